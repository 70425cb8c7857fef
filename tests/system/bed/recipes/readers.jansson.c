// jansson: `jansson strict` refuses a NUL, `jansson strlen` takes a text up to its first, `jansson
// length` whole.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_length;

static void print_hex(const char *text, size_t length) {
    putchar('"');
    for (size_t at = 0; at < length; at++)
        printf("%02x", (unsigned char)text[at]);
    putchar('"');
}

static void print_described(json_t *value) {
    size_t at;
    const char *key;
    json_t *inner;
    switch (json_typeof(value)) {
    case JSON_NULL:
        printf("null");
        break;
    case JSON_TRUE:
        printf("true");
        break;
    case JSON_FALSE:
        printf("false");
        break;
    case JSON_REAL:
        printf("[\"n\",\"%.17g\"]", json_real_value(value));
        break;
    case JSON_INTEGER:
        printf("[\"n\",\"%" JSON_INTEGER_FORMAT "\"]", json_integer_value(value));
        break;
    case JSON_STRING: {
        const char *text = json_string_value(value);
        print_hex(text, by_length ? json_string_length(value) : strlen(text));
        break;
    }
    case JSON_ARRAY:
        printf("[\"a\"");
        json_array_foreach(value, at, inner) {
            putchar(',');
            print_described(inner);
        }
        putchar(']');
        break;
    case JSON_OBJECT:
        printf("[\"o\"");
        json_object_foreach(value, key, inner) {
            printf(",[");
            print_hex(key, strlen(key));
            putchar(',');
            print_described(inner);
            putchar(']');
        }
        putchar(']');
        break;
    }
}

static size_t unhex(char *line) {
    size_t length = strcspn(line, "\n") / 2;
    for (size_t at = 0; at < length; at++) {
        char pair[3] = {line[2 * at], line[2 * at + 1], 0};
        line[at] = (char)strtol(pair, NULL, 16);
    }
    line[length] = 0;
    return length;
}

int main(int argc, char **argv) {
    char *line = NULL;
    size_t room = 0;
    const char *way = argc > 1 ? argv[1] : "strict";
    size_t flags = strcmp(way, "strict") ? JSON_ALLOW_NUL : 0;
    by_length = !strcmp(way, "length");
    while (getline(&line, &room, stdin) > 0) {
        json_error_t error;
        json_t *whole = json_loadb(line, unhex(line), flags, &error);
        if (json_is_object(whole))
            print_described(whole);
        else
            printf("refused");
        putchar('\n');
        json_decref(whole);
    }
    free(line);
    return 0;
}
