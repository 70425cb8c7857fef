/* What the programs of the benchmark share: a clock, medians, and a command on two pipes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* One request that every server answers, and what follows it. */
#define INITIALIZE \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
    "\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n"
#define INITIALIZED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"

static inline void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "not as expected");
    exit(1);
}

static inline double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static inline void pause_ms(long ms)
{
    struct timespec length = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&length, NULL);
}

static inline void write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written < 0)
            fail("write");
        data += written;
        size -= written;
    }
}

struct samples {
    double *values;
    size_t count;
};

static inline void keep(struct samples *samples, double value)
{
    if (samples->count % 1024 == 0)
        samples->values = realloc(samples->values, (samples->count + 1024) * sizeof value);
    if (samples->values == NULL)
        fail("memory");
    samples->values[samples->count++] = value;
}

static inline int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The value below which this share of the samples lies: 0.5 is the median. */
static inline double percentile(struct samples *samples, double share)
{
    if (samples->count == 0)
        fail("no samples");
    qsort(samples->values, samples->count, sizeof *samples->values, compare);
    return samples->values[(size_t)(share * (samples->count - 1))];
}

/* Put the numbers from 0 to count-1 into another order each time. */
static inline void shuffle(int *order, int count)
{
    for (int i = 0; i < count; i++) {
        int j = rand() % (i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

/* Cut a command at its blanks. */
static inline char **words(const char *command)
{
    char *text = strdup(command), **argv = calloc(64, sizeof *argv);
    for (int i = 0; i < 63 && (argv[i] = strtok(i ? NULL : text, " ")); i++)
        ;
    return argv;
}

struct child {
    pid_t pid;
    int to_fd, from_fd;
};

/* Start a command with pipes for 0 and 1; `become`, unless NULL, runs in it before the exec. */
static inline struct child start(char **argv, void (*become)(const void *), const void *whom)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        fail("pipe");
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0)
            fail("dup2");
        if (become)
            become(whom);
        execvp(argv[0], argv);
        fail(argv[0]);
    }
    close(in[0]);
    close(out[1]);
    return (struct child){pid, in[1], out[0]};
}

/* Close what the command reads, and wait; it must end with status 0. */
static inline void finish(struct child child)
{
    int status;
    close(child.to_fd);
    if (waitpid(child.pid, &status, 0) < 0)
        fail("wait");
    close(child.from_fd);
    errno = 0;
    if (status != 0)
        fail("how a command ended");
}
