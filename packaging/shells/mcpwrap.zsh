#compdef mcpwrap mcpwrap-connect
# Completion of mcpwrap and mcpwrap-connect for zsh. packaging/completions.py adds the functions of the commands.
#
# Names of servers and secrets come from files that every account may read and only root may write. They are
# text here: nothing of them is evaluated, and a name that mcpwrap would refuse is left out.

@TABLE@
# Offer the servers of this machine.
_mcpwrap_servers() {
  local expl
  local -a names
  names=(/var/lib/mcpwrap/bin/mcp-wrapper-*(N:t))
  names=(${(M)${names#mcp-wrapper-}:#[a-z]*})
  names=(${names:#*[^a-z0-9_-]*})
  _wanted servers expl server compadd -a names
}

# Offer the secrets that the server refers to, or that were set for it. It is the first argument. What begins with
# `*` is found by a regular expression: `${text#*…}` takes seconds for 50 kB.
_mcpwrap_secrets() {
  local server=$line[1] text found head='{"format":1,"by_server":{' close='}' part expl MATCH MBEGIN MEND
  local -a match mbegin mend
  local -aU names
  [[ $server == [a-z]* && $server != *[^a-z0-9_-]* ]] || return 1
  # The server descriptor, which is indented, has a list of keys.
  text= part=/var/lib/mcpwrap/servers/$server.json
  [[ -f $part && -r $part ]] && text=$(<$part)
  found=$'\n "secrets": \\[([^]]*)\\],\n "secret_files": '
  [[ $text =~ $found ]] && names=(${=${match[1]//[\",]/ }})
  # The index of secrets: {"format":1,"by_server":{"NAME":{"KEY":{"version":1,"is_set":true,"changed_at":""},…},…}}
  text= part=/var/lib/mcpwrap/secrets.json
  [[ -f $part && -r $part ]] && text=$(<$part)
  if [[ $text == $head* ]]; then
    text=,${text:${#head}}
    found=',"'$server'":\{("[^}]*\}(,"[^}]*\})*)\}'
    if [[ $text =~ $found ]]; then
      for part in "${(@ps:$close:)match[1]}"; do
        [[ $part == *'":{"version":'*',"is_set":true,'* ]] || continue
        part=${part%%'":{'*}
        names+=(${part##*'"'})
      done
    fi
  fi
  names=(${(M)names:#[A-Z_]*})
  names=(${${names:#*[^A-Z0-9_]*}:#MCPWRAP_OAUTH_KEY})
  _wanted secrets expl secret compadd -a names
}

# Complete the command line of another program. A `--` right behind `run` is left among its words by _arguments.
_mcpwrap_program() {
  if [[ $words[1] == -- ]]; then
    shift words
    (( CURRENT-- ))
  fi
  _normal
}

_mcpwrap() {
  if [[ $service == mcpwrap-connect ]]; then
    __mcpwrap_connect
  else
    __mcpwrap
  fi
}

# Loaded by the first TAB, and not by `source`.
[[ $zsh_eval_context[-1] == loadautofunc ]] && _mcpwrap
