PS1='ready$ '
autoload -U compinit
compinit -d ~/.zcompdump
