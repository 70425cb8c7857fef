# Without suggestions, which show the same words before TAB is pressed.
set -g fish_autosuggestion_enabled 0
set -g fish_greeting
function fish_prompt
    echo -n 'ready$ '
end
