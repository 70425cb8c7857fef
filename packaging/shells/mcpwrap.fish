# Completion of mcpwrap and mcpwrap-connect for fish. packaging/completions.py adds the table of commands.
#
# Names of servers and secrets come from files that every account may read and only root may write. They are
# text here: nothing of them is evaluated, and a name that mcpwrap would refuse is left out.

# Set the caller's variables of the command whose words are in $path.
function __mcpwrap_command --no-scope-shadowing
    set commands
    set options
    set valued
    set kinds
    set arguments
    switch "$path"
@TABLE@
    end
end

function __mcpwrap_servers
    for path in /var/lib/mcpwrap/bin/mcp-wrapper-*
        string match -rg '^/var/lib/mcpwrap/bin/mcp-wrapper-([a-z][a-z0-9_-]*)\z' -- $path
    end
end

# Print the secrets that a server refers to, or that were set for it.
function __mcpwrap_secrets --argument-names server
    string match -qr '^[a-z][a-z0-9_-]*\z' -- $server; or return
    set -l key '[A-Z_][A-Z0-9_]{0,63}'
    set -l set_at '\{"version":[0-9]+,"is_set"'
    set -l text
    set -l names
    # The server descriptor, which is indented, has a list of keys.
    if test -f /var/lib/mcpwrap/servers/$server.json -a -r /var/lib/mcpwrap/servers/$server.json
        read -z text </var/lib/mcpwrap/servers/$server.json
        set text (string match -r '\n "secrets": \[[^]]*\],\n "secret_files": ' -- $text)
        set names (string match -arg "\"($key)\"" -- $text)
    end
    # The index of secrets: {"format":1,"by_server":{"NAME":{"KEY":{"version":1,"is_set":true,"changed_at":""},…},…}}
    if test -f /var/lib/mcpwrap/secrets.json -a -r /var/lib/mcpwrap/secrets.json
        read -z text </var/lib/mcpwrap/secrets.json
        set text (string match -r "\"$server\":\\{(?:,?\"$key\":$set_at:[a-z]+,\"changed_at\":\"[^\"]*\"\\})+\\}" -- $text)
        set -a names (string match -arg "\"($key)\":$set_at:true" -- $text)
    end
    string match -v MCPWRAP_OAUTH_KEY -- $names
end

# Print the values of a kind, each after the text that precedes it in the word.
function __mcpwrap_offer --argument-names kind prefix value server
    switch "$kind"
        case file
            string join \n -- $prefix(__fish_complete_path $value)
        case server
            string join \n -- $prefix(__mcpwrap_servers)
        case secret
            string join \n -- $prefix(__mcpwrap_secrets "$server")
        case '=*'
            string join \n -- $prefix(string split '|' -- (string sub -s 2 -- $kind))
    end
end

# Complete the command line of another program.
function __mcpwrap_program
    complete -C (string join ' ' -- (string escape -- $argv) (commandline -ct) | string collect)
end

function __mcpwrap_complete --argument-names path
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l kind
    set -l server
    set -l is_rest
    set -l commands
    set -l options
    set -l valued
    set -l kinds
    set -l arguments
    set -l index
    __mcpwrap_command
    set -e words[1]
    while set -q words[1]
        set -l word $words[1]
        set -e words[1]
        if set -q kind[1]
            set kind
        else if not set -q is_rest[1]; and test "$word" = --
            set is_rest 1
        else if not set -q is_rest[1]; and string match -qr '^-.' -- $word
            set index (contains -i -- $word $valued); and set kind $kinds[$index]
            if test "$kind" = program
                __mcpwrap_program $words
                return
            end
        else if set -q commands[1]
            contains -- $word (string split -f 1 \t -- $commands); or return
            set path "$path $word"
            __mcpwrap_command
        else if string match -q 'program*' -- $arguments[1]
            __mcpwrap_program $word $words
            return
        else
            test "$arguments[1]" = server; and set server $word
            # The next argument; the last one may be repeated.
            string match -q '*\*' -- $arguments[1]; or set -e arguments[1]
        end
    end
    if set -q kind[1]
        __mcpwrap_offer $kind '' $current
    else if not set -q is_rest[1]; and string match -qr '^--.*=' -- $current
        set -l option (string split -m 1 = -- $current)
        set index (contains -i -- $option[1] $valued); and __mcpwrap_offer $kinds[$index] "$option[1]=" $option[2]
    else if not set -q is_rest[1]; and string match -q -- '-*' $current
        string join \n -- $options
    else if set -q commands[1]
        string join \n -- $commands
    else if string match -q 'program*' -- $arguments[1]
        __mcpwrap_program
    else if set -q arguments[1]
        __mcpwrap_offer (string trim -r -c '*' -- $arguments[1]) '' "$current" "$server"
    end
end

complete -c mcpwrap -f -a '(__mcpwrap_complete mcpwrap)'
complete -c mcpwrap-connect -f -a '(__mcpwrap_complete mcpwrap-connect)'
