# Puts the time of each whole TAB into `took`, in microseconds: zsh's own parts too.
zmodload zsh/datetime
timed-tab() {
    local begun=$EPOCHREALTIME
    zle expand-or-complete
    took=$(((EPOCHREALTIME - begun) * 1000000))
    took=${took%.*}
}
zle -N timed-tab
bindkey '^I' timed-tab
