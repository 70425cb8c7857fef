/* `starts ROUNDS PAUSE_MS [LABEL ACCOUNT BEFORE COMMAND]…`: what a session costs to start and end.
 *
 * RUNS AS ROOT, because some commands need it; each command is started as its ACCOUNT. BEFORE is a
 * command that runs before each start and is not timed; empty is none. Each round visits all in
 * another order. Prints `LABEL METRIC VALUE` lines. */
#include "common.h"
#include <grp.h>
#include <pwd.h>

#define MAX_GROUPS 64
#define WARM_UP_ROUNDS 3

struct account {
    uid_t uid;
    gid_t gid, groups[MAX_GROUPS];
    int group_count;
};

struct target {
    char *label, **before, **command;
    struct account account;
    struct samples first_answer, whole;
};

static struct account account(const char *name)
{
    struct passwd *entry = getpwnam(name);
    if (entry == NULL)
        fail(name);
    struct account found = {entry->pw_uid, entry->pw_gid, {0}, MAX_GROUPS};
    if (getgrouplist(name, entry->pw_gid, found.groups, &found.group_count) < 0)
        fail(name);
    return found;
}

static void become(const void *given)
{
    const struct account *whom = given;
    if (setgroups(whom->group_count, whom->groups) || setgid(whom->gid) || setuid(whom->uid))
        fail("becoming another account");
}

static void run_before(struct target *target)
{
    if (target->before[0] == NULL)
        return;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(target->before[0], target->before);
        fail(target->before[0]);
    }
    if (waitpid(pid, &status, 0) < 0 || status != 0)
        fail(target->before[0]);
}

/* Start, ask one question, read the answer, end. */
static void one_session(struct target *target)
{
    char answer[4096];
    double since = now_us();
    struct child child = start(target->command, become, &target->account);
    write_all(child.to_fd, INITIALIZE, strlen(INITIALIZE));
    errno = 0;
    ssize_t got = read(child.from_fd, answer, sizeof answer);
    if (got <= 0 || answer[got - 1] != '\n')
        fail(target->label);
    keep(&target->first_answer, now_us() - since);
    finish(child);
    keep(&target->whole, now_us() - since);
}

static void visit_all(struct target *targets, int count, int rounds, long between_ms)
{
    int order[count];
    for (int round = 0; round < rounds; round++) {
        shuffle(order, count);
        for (int i = 0; i < count; i++) {
            run_before(&targets[order[i]]);
            pause_ms(between_ms); /* what the one before left to clear away */
            one_session(&targets[order[i]]);
        }
    }
}

static void print(struct target *target, double per_s)
{
    const char *label = target->label;
    printf("%s first_p50_ms %.3f\n", label, percentile(&target->first_answer, 0.5) / 1e3);
    printf("%s first_p95_ms %.3f\n", label, percentile(&target->first_answer, 0.95) / 1e3);
    printf("%s whole_p50_ms %.3f\n", label, percentile(&target->whole, 0.5) / 1e3);
    printf("%s per_s %.1f\n", label, per_s);
}

int main(int argc, char **argv)
{
    int count = (argc - 3) / 4;
    if (count < 1 || argc != 3 + 4 * count)
        return 64;
    int rounds = atoi(argv[1]);
    long between_ms = atol(argv[2]);
    struct target *targets = calloc(count, sizeof *targets);
    for (int i = 0; i < count; i++) {
        char **given = argv + 3 + 4 * i;
        targets[i] = (struct target){.label = given[0], .account = account(given[1]),
                                     .before = words(given[2]), .command = words(given[3])};
    }
    visit_all(targets, count, WARM_UP_ROUNDS, between_ms);
    for (int i = 0; i < count; i++)
        targets[i].first_answer.count = targets[i].whole.count = 0;
    double since = now_us();
    visit_all(targets, count, rounds, between_ms);
    double per_s = rounds * 1e6 / (now_us() - since); /* means something for one without a pause */
    for (int i = 0; i < count; i++)
        print(&targets[i], per_s);
    return 0;
}
