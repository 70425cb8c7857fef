<?php
// PHP's json_decode: `assoc` into arrays, `object` into objects.

function described(mixed $value): string
{
    if ($value === null || is_bool($value)) {
        return json_encode($value);
    }
    if (is_string($value)) {
        return '"' . bin2hex($value) . '"';
    }
    if (is_int($value) || is_float($value)) {
        return '["n","' . (is_int($value) ? $value : var_export($value, true)) . '"]';
    }
    $parts = [];
    if (is_array($value) && array_is_list($value) && $value !== []) {
        foreach ($value as $inner) {
            $parts[] = ',' . described($inner);
        }
        return '["a"' . implode($parts) . ']';
    }
    foreach ((array) $value as $key => $inner) {
        $parts[] = ',[' . described((string) $key) . ',' . described($inner) . ']';
    }
    return '["o"' . implode($parts) . ']';
}

while (($line = fgets(STDIN)) !== false) {
    $text = hex2bin(rtrim($line, "\n"));
    $whole = json_decode($text, $argv[1] === 'assoc');
    // To `assoc` an object is an array too.
    $isObject = (ltrim($text)[0] ?? '') === '{' && $whole !== null;
    echo $isObject ? described((object) $whole) : 'refused', "\n";
}
