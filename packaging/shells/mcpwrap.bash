# Completion of mcpwrap and mcpwrap-connect for bash. packaging/completions.py adds the table of commands.
#
# Names of servers and secrets come from files that every account may read and only root may write. They are
# text here: nothing of them is evaluated, and a name that mcpwrap would refuse is left out.

# Set the variables commands, options, values and arguments of a command, whose words are $1.
_mcpwrap_command() {
    case $1 in
@TABLE@
    esac
}

# Set names to the servers of this machine, without a process: a fork may take longer than all else.
_mcpwrap_servers() {
    local - path is_strict=
    local -a paths
    set +f
    shopt -q failglob && is_strict=1
    shopt -u failglob
    paths=(/var/lib/mcpwrap/bin/mcp-wrapper-*)
    [[ $is_strict ]] && shopt -s failglob
    for path in "${paths[@]}"; do
        path=${path##*/mcp-wrapper-}
        _mcpwrap_is_server "$path" && names+=("$path")
    done
}

# No ranges, which depend on the locale.
_mcpwrap_is_server() {
    [[ $1 == [abcdefghijklmnopqrstuvwxyz]* && $1 != *[!abcdefghijklmnopqrstuvwxyz0123456789_-]* ]]
}

# Set text to a file. `$(<file)` would be a process.
_mcpwrap_read() {
    local -a whole
    text=
    [[ -f $1 && -r $1 ]] || return
    mapfile -d '' -n 1 whole < "$1"
    text=${whole[0]-}
}

# Set names to the secrets that server $1 refers to, or that were set for it. What begins with `*` is found by
# a regular expression: `${text#*…}` takes seconds for 50 kB.
_mcpwrap_secrets() {
    local server=$1 text found head='{"format":1,"by_server":{' part
    local -a parts
    _mcpwrap_is_server "$server" || return
    # The server descriptor, which is indented, has a list of keys.
    _mcpwrap_read "/var/lib/mcpwrap/servers/$server.json"
    found=$'\n "secrets": \\[([^]]*)\\],\n "secret_files": '
    if [[ $text =~ $found ]]; then
        IFS=$'", \n' read -r -d '' -a parts <<< "${BASH_REMATCH[1]}"
        for part in "${parts[@]}"; do
            _mcpwrap_add_secret "$part"
        done
    fi
    # The index of secrets: {"format":1,"by_server":{"NAME":{"KEY":{"version":1,"is_set":true,"changed_at":""},…},…}}
    _mcpwrap_read /var/lib/mcpwrap/secrets.json
    [[ $text == "$head"* ]] || return
    text=,${text:${#head}}
    found=',"'$server'":\{("[^}]*\}(,"[^}]*\})*)\}'
    if [[ $text =~ $found ]]; then
        IFS='}' read -r -a parts <<< "${BASH_REMATCH[1]}"
        for part in "${parts[@]}"; do
            [[ $part == *'":{"version":'*',"is_set":true,'* ]] || continue
            part=${part%%\":\{*}
            _mcpwrap_add_secret "${part##*\"}"
        done
    fi
}

_mcpwrap_add_secret() {
    [[ $1 && $1 != *[!ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_]* && $1 != MCPWRAP_OAUTH_KEY ]] || return
    # The descriptor and the index may both have it.
    [[ " ${names[*]} " == *" $1 "* ]] || names+=("$1")
}

# Offer the values of kind $1 that begin with $2; $3 is what precedes them in the word.
_mcpwrap_offer() {
    local name
    local -a names=()
    case $1 in
    file) compopt -o default; return ;;  # readline's own, with its quotes
    server) _mcpwrap_servers ;;
    secret) _mcpwrap_secrets "$server" ;;
    =*) IFS='|' read -r -a names <<< "${1#=}" ;;
    words) read -r -a names <<< "$4" ;;
    esac
    for name in "${names[@]}"; do
        [[ $name == "$2"* ]] && COMPREPLY+=("$3$name")
    done
}

# Set kind to that of the value of option $1; empty for a flag.
_mcpwrap_value() {
    local -a each
    local value
    kind=
    read -r -a each <<< "$values"
    for value in "${each[@]}"; do
        [[ ${value%%:*} == "$1" ]] && kind=${value#*:}
    done
}

# Complete the command line of another program, which begins at word $1.
_mcpwrap_program() {
    local offset
    for offset in _comp_command_offset _command_offset; do
        declare -F "$offset" > /dev/null || continue
        "$offset" "$1"
        return
    done
    compopt -o default  # without the package bash-completion
}

_mcpwrap_complete() {
    local IFS=$' \t\n' path=$1 current=$2 kind= server= is_rest= word i
    local commands options values arguments
    COMPREPLY=()
    _mcpwrap_command "$path"
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $kind ]]; then
            [[ $word == '=' ]] || kind=  # `--server=x` is three words
        elif [[ ! $is_rest && $word == -- ]]; then
            is_rest=1
        elif [[ ! $is_rest && $word == -?* ]]; then
            [[ $word == *=* ]] || _mcpwrap_value "$word"
            if [[ $kind == program ]]; then
                _mcpwrap_program "$((i + 1))"
                return
            fi
        elif [[ $commands ]]; then
            [[ " $commands " == *" $word "* ]] || return
            path+=" $word"
            _mcpwrap_command "$path"
        elif [[ $arguments == program* ]]; then
            _mcpwrap_program "$i"
            return
        else
            [[ $arguments == server* ]] && server=$word
            # The next argument; the last one may be repeated.
            [[ ${arguments%% *} == *'*' ]] || arguments=${arguments#"${arguments%% *}"} arguments=${arguments# }
        fi
    done
    [[ ${COMP_WORDS[COMP_CWORD]} == '=' ]] && current=
    if [[ $kind ]]; then
        _mcpwrap_offer "$kind" "$current" ''
    elif [[ ! $is_rest && $current == --*=* ]]; then  # where `=` does not end a word
        _mcpwrap_value "${current%%=*}"
        _mcpwrap_offer "$kind" "${current#*=}" "${current%%=*}="
    elif [[ ! $is_rest && $current == -* ]]; then
        _mcpwrap_offer words "$current" '' "$options"
    elif [[ $commands ]]; then
        _mcpwrap_offer words "$current" '' "$commands"
    elif [[ $arguments == program* ]]; then
        _mcpwrap_program "$COMP_CWORD"
    else
        kind=${arguments%% *}
        _mcpwrap_offer "${kind%'*'}" "$current" ''
    fi
}

_mcpwrap() { _mcpwrap_complete mcpwrap "$2"; }
_mcpwrap_connect() { _mcpwrap_complete mcpwrap-connect "$2"; }

complete -F _mcpwrap mcpwrap
complete -F _mcpwrap_connect mcpwrap-connect
