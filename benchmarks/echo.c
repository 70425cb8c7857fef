/* The MCP server behind every row: small, so that what stands in front of it is what one sees.
 *
 * It answers `initialize`, `tools/list` and two tools: `echo` gives its text back, `length` how long the
 * line was.
 * It finds its words by searching, which is enough for lines that load.c and starts.c send. */
#include "common.h"

static char *answers;
static size_t answers_size, answers_room;

static void add(const char *data, size_t size)
{
    if (answers_size + size > answers_room) {
        answers_room = 2 * (answers_size + size);
        answers = realloc(answers, answers_room);
        if (answers == NULL)
            fail("memory");
    }
    memcpy(answers + answers_size, data, size);
    answers_size += size;
}

static void add_text(const char *text)
{
    add(text, strlen(text));
}

/* Return where the value of the first `"NAME":` in the head of a line begins, or NULL. */
static const char *value_of(const char *line, size_t size, const char *name)
{
    const char *found = memmem(line, size < 256 ? size : 256, name, strlen(name));
    return found ? found + strlen(name) + strspn(found + strlen(name), " ") : NULL;
}

static int is_text(const char *value, const char *text)
{
    return value && strncmp(value, text, strlen(text)) == 0;
}

static void add_tool_result(const char *line, size_t size)
{
    const char *text = value_of(line, size, "\"text\":");
    const char *end = text ? memchr(text + 1, '"', line + size - text - 1) : NULL;
    char length[32];
    add_text("{\"content\":[{\"type\":\"text\",\"text\":\"");
    if (is_text(value_of(line, size, "\"name\":"), "\"length\"")) {
        snprintf(length, sizeof length, "%zu", size);
        add_text(length);
    } else if (end) {
        add(text + 1, end - text - 1);
    }
    add_text("\"}]}");
}

static void answer(const char *line, size_t size)
{
    const char *id = value_of(line, size, "\"id\":");
    if (id == NULL)
        return; /* a notification */
    add_text("{\"jsonrpc\":\"2.0\",\"id\":");
    /* A hub's own ids are strings. */
    add(id, *id == '"' ? strcspn(id + 1, "\"") + 2 : strspn(id, "0123456789"));
    add_text(",\"result\":");
    if (is_text(value_of(line, size, "\"method\":"), "\"initialize\""))
        add_text("{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"
                 "\"serverInfo\":{\"name\":\"echo\",\"version\":\"1\"}}");
    else if (is_text(value_of(line, size, "\"method\":"), "\"tools/list\""))
        add_text("{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}},"
                 "{\"name\":\"length\",\"inputSchema\":{\"type\":\"object\"}}]}");
    else
        add_tool_result(line, size);
    add_text("}\n");
}

int main(void)
{
    size_t room = 1 << 20, held = 0;
    char *lines = malloc(room);
    ssize_t got;
    while ((got = read(0, lines + held, room - held)) > 0) {
        size_t done = 0;
        char *end;
        held += got;
        while ((end = memchr(lines + done, '\n', held - done))) {
            answer(lines + done, end - (lines + done));
            done = end + 1 - lines;
        }
        write_all(1, answers, answers_size); /* all answers that are ready, in one go */
        answers_size = 0;
        held -= done;
        memmove(lines, lines + done, held);
    }
    return 0;
}
