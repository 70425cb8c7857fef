/* `relay COMMAND`: what any process in the middle costs at least, written in C.
 *
 * Like the gate it moves whole lines with one blocking thread a direction; it does nothing else. */
#include "common.h"
#include <pthread.h>

struct way {
    int from_fd, to_fd;
};

static void *move(void *given)
{
    struct way *way = given;
    size_t room = 1 << 20, held = 0;
    char *lines = malloc(room);
    ssize_t got;
    while ((got = read(way->from_fd, lines + held, room - held)) > 0) {
        char *last = memrchr(lines + held, '\n', got);
        held += got;
        if (last == NULL)
            continue;
        size_t whole = last + 1 - lines;
        write_all(way->to_fd, lines, whole);
        held -= whole;
        memmove(lines, lines + whole, held);
    }
    close(way->to_fd);
    free(lines);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 64;
    struct child server = start(argv + 1, NULL, NULL);
    struct way inward = {0, server.to_fd}, outward = {server.from_fd, 1};
    pthread_t thread;
    if (pthread_create(&thread, NULL, move, &inward))
        fail("thread");
    move(&outward);
    return 0;
}
