// json-c: `json-c strlen` takes a text up to its first NUL, `json-c length` whole. Keys are C strings.
#include <inttypes.h>
#include <json-c/json.h>
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

static void print_described(json_object *value) {
    switch (json_object_get_type(value)) {
    case json_type_null:
        printf("null");
        break;
    case json_type_boolean:
        printf(json_object_get_boolean(value) ? "true" : "false");
        break;
    case json_type_double:
        printf("[\"n\",\"%.17g\"]", json_object_get_double(value));
        break;
    case json_type_int:
        printf("[\"n\",\"%" PRId64 "\"]", json_object_get_int64(value));
        break;
    case json_type_string: {
        const char *text = json_object_get_string(value);
        print_hex(text, by_length ? (size_t)json_object_get_string_len(value) : strlen(text));
        break;
    }
    case json_type_array:
        printf("[\"a\"");
        for (size_t at = 0; at < json_object_array_length(value); at++) {
            putchar(',');
            print_described(json_object_array_get_idx(value, at));
        }
        putchar(']');
        break;
    case json_type_object:
        printf("[\"o\"");
        json_object_object_foreach(value, key, inner) {
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
    by_length = argc > 1 && !strcmp(argv[1], "length");
    while (getline(&line, &room, stdin) > 0) {
        unhex(line);
        json_object *whole = json_tokener_parse(line);
        if (json_object_is_type(whole, json_type_object))
            print_described(whole);
        else
            printf("refused");
        putchar('\n');
        json_object_put(whole);
    }
    free(line);
    return 0;
}
