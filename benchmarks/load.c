/* `load ROUNDS KIND,KIND… LABEL=COMMAND…`: what a message costs through each command. Plays the agent.
 *
 * All commands run at the same time, and each round visits them in another order, so that noise of
 * the machine hits all alike. Prints `LABEL KIND_p50 VALUE` and `LABEL KIND_p99 VALUE`: microseconds,
 * or calls a second for `window`. A command labelled `flood` is not visited: it gets one call of a
 * megabyte after the other for as long as others are visited for `beside`. */
#include "common.h"
#include <pthread.h>

#define SMALL_BYTES 300
#define MIDDLE_BYTES (20 * 1000)
#define LARGE_BYTES (100 * 1000)
#define HUGE_BYTES (1000 * 1000)
#define ANSWER_BYTES (LARGE_BYTES + 4096)
#define HOT_CALLS 400      /* a round, one after the other */
#define SPARSE_CALLS 10    /* a round, with a pause before each */
#define LARGE_CALLS 20     /* a round, of each shape */
#define HUGE_CALLS 6       /* a round */
#define WINDOW 64          /* requests that are under way at a time */
#define WINDOW_CALLS 12800 /* a round */
#define BETWEEN_MS 10
#define MOST_US 150e3     /* for one visit: some need a millisecond for what others do in ten microseconds */
#define FIRST_ID 10000000 /* so that all have eight digits */
#define WARM_UP 2         /* rounds that do not count */
#define FLOOD "flood"

struct request {
    char *line, *id;
    size_t size;
};

enum { HOT, SPARSE, MIDDLE, LARGE, KEYS, HUGE, BOTH_WAYS, IN_WINDOW, BESIDE, KINDS };

struct target {
    char *label;
    struct child child;
    struct samples kept[KINDS];
    char answer[ANSWER_BYTES];
};

static struct request small, middle, large, keys, huge, both_ways;
static char window[WINDOW * SMALL_BYTES];
static int next_id = FIRST_ID;

static struct request begin(const char *tool, size_t size)
{
    struct request made = {calloc(1, size + 1), NULL, 0};
    made.size = snprintf(made.line, size,
        "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
        "\"arguments\":{\"text\":\"", FIRST_ID, tool);
    made.id = strstr(made.line, "\"id\":") + 5;
    return made;
}

/* A request of so many bytes, nearly all of them in one text. */
static struct request request(const char *tool, size_t size)
{
    static const char words[] = "the quick brown fox jumps over a lazy dog, and ";
    struct request made = begin(tool, size);
    for (; made.size < size - 5; made.size++)
        made.line[made.size] = words[made.size % (sizeof words - 1)];
    memcpy(made.line + made.size, "\"}}}\n", 5);
    made.size = size;
    return made;
}

/* About as many bytes in a thousand objects of three keys each. */
static struct request request_of_keys(size_t size)
{
    struct request made = begin("length", size + 256);
    made.size += sprintf(made.line + made.size, "none\",\"items\":{\"first\":0");
    for (int i = 0; made.size < size - 100; i++)
        made.size += sprintf(made.line + made.size,
            ",\"item%04d\":{\"title\":\"what it is called, and a word on it\",\"count\":%d,"
            "\"tags\":[\"some\",\"word\"]}", i, i);
    made.size += sprintf(made.line + made.size, "}}}}\n");
    return made;
}

static void number(char *id)
{
    for (int place = 7, rest = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED); place >= 0;
         place--, rest /= 10)
        id[place] = '0' + rest % 10;
}

/* Read one answer; it must be to the request with this id. */
static void await_answer(struct target *target, const char *id)
{
    char *answer = target->answer;
    size_t held = 0;
    do {
        ssize_t got = read(target->child.from_fd, answer + held, ANSWER_BYTES - held);
        if (got <= 0)
            fail(target->label);
        held += got;
    } while (answer[held - 1] != '\n');
    char *found = memmem(answer, held < 64 ? held : 64, "\"id\":", 5);
    errno = 0;
    if (id && (found == NULL || memcmp(found + 5 + (found[5] == ' '), id, 8) != 0))
        fail(target->label);
    /* Refused is soon done, and nobody's figure. */
    if (id && memmem(answer, held < 256 ? held : 256, "\"isError\"", 9))
        fail(target->label);
}

static double call(struct target *target, struct request *what)
{
    number(what->id);
    double since = now_us();
    write_all(target->child.to_fd, what->line, what->size);
    await_answer(target, what->id);
    return now_us() - since;
}

static void call_often(struct target *target, struct request *what, int times, struct samples *kept)
{
    double until = now_us() + MOST_US;
    for (int i = 0; i < times / 20 + 1; i++)
        call(target, what);
    for (int i = 0; i < times && (i == 0 || now_us() < until); i++)
        keep(kept, call(target, what));
}

static void visit_sparsely(struct target *target)
{
    for (int i = 0; i < SPARSE_CALLS; i++) {
        pause_ms(BETWEEN_MS);
        keep(&target->kept[SPARSE], call(target, &small));
    }
}

static int lines_that_came(struct target *target)
{
    char *answer = target->answer;
    ssize_t got = read(target->child.from_fd, answer, ANSWER_BYTES);
    if (got <= 0)
        fail(target->label);
    int lines = 0;
    for (char *at = answer; (at = memchr(at, '\n', answer + got - at)); at++)
        lines++;
    return lines;
}

/* Keep WINDOW requests under way until WINDOW_CALLS are answered, or it has taken long enough. */
static void visit_with_window(struct target *target)
{
    int to_send = WINDOW, sent = 0, answered = 0;
    double since = now_us();
    while (answered < sent || to_send > 0) {
        for (int i = 0; i < to_send; i++)
            number(window + i * SMALL_BYTES + (small.id - small.line));
        write_all(target->child.to_fd, window, to_send * SMALL_BYTES);
        sent += to_send;
        int came = lines_that_came(target);
        answered += came;
        to_send = came < WINDOW_CALLS - sent ? came : WINDOW_CALLS - sent;
        if (now_us() - since > MOST_US)
            to_send = 0;
    }
    keep(&target->kept[IN_WINDOW], answered * 1e6 / (now_us() - since));
}

static void visit(struct target *target, int kind)
{
    struct samples *kept = &target->kept[kind];
    switch (kind) {
    case HOT:
    case BESIDE:
        return call_often(target, &small, HOT_CALLS, kept);
    case SPARSE:
        return visit_sparsely(target);
    case MIDDLE:
        return call_often(target, &middle, LARGE_CALLS, kept);
    case LARGE:
        return call_often(target, &large, LARGE_CALLS, kept);
    case KEYS:
        return call_often(target, &keys, LARGE_CALLS, kept);
    case HUGE:
        return call_often(target, &huge, HUGE_CALLS, kept);
    case BOTH_WAYS:
        return call_often(target, &both_ways, LARGE_CALLS, kept);
    case IN_WINDOW:
        return visit_with_window(target);
    }
}

static const char *const names[KINDS] = {
    "hot", "sparse", "text_20k", "text_100k", "keys_100k", "text_1m", "both_ways", "window", "beside",
};

static struct target *flooded;
static int is_flooding;

static void *flood(void *unused)
{
    struct request own = request("length", HUGE_BYTES);
    while (__atomic_load_n(&is_flooding, __ATOMIC_RELAXED))
        call(flooded, &own);
    free(own.line);
    return unused;
}

static void visit_in_order(struct target *targets, const int *order, int count, int kind)
{
    pthread_t thread;
    if (kind == BESIDE) {
        is_flooding = 1;
        if (pthread_create(&thread, NULL, flood, NULL))
            fail("thread");
        pause_ms(BETWEEN_MS);
    }
    for (int i = 0; i < count; i++)
        if (&targets[order[i]] != flooded)
            visit(&targets[order[i]], kind);
    if (kind == BESIDE) {
        __atomic_store_n(&is_flooding, 0, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
    }
}

static void visit_all(struct target *targets, int count, int rounds, const int *is_asked)
{
    int order[count];
    for (int round = 0; round < rounds; round++)
        for (int kind = 0; kind < KINDS; kind++) {
            if (!is_asked[kind])
                continue;
            shuffle(order, count);
            visit_in_order(targets, order, count, kind);
        }
}

static void prepare_requests(void)
{
    small = request("echo", SMALL_BYTES);
    middle = request("length", MIDDLE_BYTES);
    large = request("length", LARGE_BYTES);
    keys = request_of_keys(LARGE_BYTES);
    huge = request("length", HUGE_BYTES);
    both_ways = request("echo", LARGE_BYTES);
    for (int i = 0; i < WINDOW; i++)
        memcpy(window + i * SMALL_BYTES, small.line, SMALL_BYTES);
}

static void read_kinds(char *words, int *is_asked)
{
    for (char *word = strtok(words, ","); word; word = strtok(NULL, ",")) {
        int kind = 0;
        while (kind < KINDS && strcmp(names[kind], word) != 0)
            kind++;
        if (kind == KINDS)
            fail(word);
        is_asked[kind] = 1;
    }
    if (is_asked[BESIDE] && !flooded)
        fail("no command is labelled " FLOOD);
}

static void enter(struct target *target, char *argument)
{
    char *command = strchr(argument, '=');
    if (command == NULL)
        fail(argument);
    *command = '\0';
    target->label = argument;
    target->child = start(words(command + 1), NULL, NULL);
    write_all(target->child.to_fd, INITIALIZE, strlen(INITIALIZE));
    await_answer(target, NULL);
    write_all(target->child.to_fd, INITIALIZED, strlen(INITIALIZED));
    if (strcmp(target->label, FLOOD) == 0)
        flooded = target;
}

int main(int argc, char **argv)
{
    int count = argc - 3, is_asked[KINDS] = {0};
    if (count < 1)
        return 64;
    prepare_requests();
    struct target *targets = calloc(count, sizeof *targets);
    for (int i = 0; i < count; i++)
        enter(&targets[i], argv[i + 3]);
    read_kinds(argv[2], is_asked);
    visit_all(targets, count, WARM_UP, is_asked);
    for (int i = 0; i < count; i++)
        for (int kind = 0; kind < KINDS; kind++)
            targets[i].kept[kind].count = 0;
    visit_all(targets, count, atoi(argv[1]), is_asked);
    for (int i = 0; i < count; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            struct samples *kept = &targets[i].kept[kind];
            if (kept->count == 0)
                continue;
            printf("%s %s_p50 %.2f\n", targets[i].label, names[kind], percentile(kept, 0.5));
            printf("%s %s_p99 %.2f\n", targets[i].label, names[kind], percentile(kept, 0.99));
        }
    for (int i = 0; i < count; i++)
        finish(targets[i].child);
    return 0;
}
