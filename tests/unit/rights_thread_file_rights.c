/* SPDX-License-Identifier: BSD-3-Clause */
/* The file access of a thread with the rights of another user. Needs root, which has rights to
 * drop. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rights/thread_file_rights.h"
#include "store/file_store.h"
#include "support/fs_calls.h"
#include "support/scratch.h"

TestSuite(rights_thread_file_rights, .init = scratch_make, .fini = scratch_remove);

static const char *const names[] = {"own", "group", "all", "open/all", "closed/all"};
static const mode_t modes[] = {0600, 0640, 0644, 0644, 0644};
enum { N = 5 };

static const char *at(const char *name)
{
    static _Thread_local char path[96];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

/* 0 for each that could be read, or why not. */
static void read_all(int err[N])
{
    for (unsigned i = 0; i < N; i++) {
        int fd = open(at(names[i]), O_RDONLY);
        err[i] = fd < 0 ? errno : 0;
        if (fd >= 0)
            close(fd);
    }
}

static void make_files(void)
{
    cr_assert_eq(chmod(scratch, 0711) | mkdir(at("open"), 0755), 0);
    cr_assert_eq(mkdir(at("closed"), 0750), 0);
    for (unsigned i = 0; i < N; i++) {
        int fd = open(at(names[i]), O_WRONLY | O_CREAT, 0600);
        cr_assert(fd >= 0 && fchmod(fd, modes[i]) == 0 && close(fd) == 0);
    }
    cr_assert_eq(chmod(at("open"), 0711) | chmod(at("closed"), 0750), 0);
}

static void run_on_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, run, arg), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

static void *drop_rights(void *err)
{
    cr_assert(nj_file_rights_drop(), "the system refused");
    read_all(err);
    return NULL;
}

Test(rights_thread_file_rights, of_others)
{
    int there[N], here[N];
    bool root = geteuid() == 0;

    make_files();
    run_on_thread(drop_rights, there);
    read_all(here);
    for (unsigned i = 0; i < N; i++) {
        bool all = i == 2 || i == 3;
        cr_expect_eq(there[i], all || !root ? 0 : EACCES, "%s: %s", names[i], strerror(there[i]));
        cr_expect_eq(here[i], 0, "other threads are unchanged: %s", names[i]);
    }
}

/* Calls of this thread that change its rights; the functions below replace those of libc. */
static _Thread_local unsigned n_changes;

int setfsuid(uid_t uid)
{
    n_changes += uid != (uid_t)-1;
    return (int)syscall(SYS_setfsuid, uid);
}

int setfsgid(gid_t gid)
{
    n_changes += gid != (gid_t)-1;
    return (int)syscall(SYS_setfsgid, gid);
}

/* All that a handler may count on. */
struct own {
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    int fsuid, fsgid, n_groups;
    gid_t groups[16];
};

static struct own look(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct own o;

    memset(&o, 0, sizeof o);
    cr_assert_eq(syscall(SYS_capget, &header, o.caps), 0);
    o.fsuid = setfsuid((uid_t)-1);
    o.fsgid = setfsgid((gid_t)-1);
    o.n_groups = getgroups(16, o.groups);
    return o;
}

enum { THREADS = 4, ROUNDS = 300 };

static struct own at_start;
static pthread_barrier_t together;

static void *job_and_handler(void *arg)
{
    const char *refused = names[(uintptr_t)arg % 2]; /* to others */

    pthread_barrier_wait(&together);
    for (unsigned i = 0; i < ROUNDS; i++) {
        n_changes = 0;
        cr_assert(nj_file_rights_drop());
        cr_assert_eq(open(at(refused), O_RDONLY), -1, "%s", refused);
        cr_assert_eq(errno, EACCES);
        cr_assert_eq(n_changes, 2);
        for (unsigned k = 0; k < i % 3; k++)
            cr_assert(nj_file_rights_drop());
        cr_assert_eq(n_changes, 2, "one job after another");
        nj_file_rights_restore();
        cr_assert_eq(n_changes, 4);
        for (unsigned k = 0; k < i % 3; k++)
            nj_file_rights_restore();
        cr_assert_eq(n_changes, 4, "one handler after another");
        struct own now = look();
        cr_assert_eq(memcmp(&now, &at_start, sizeof now), 0);
        int fd = open(at(refused), O_RDONLY);
        cr_assert_geq(fd, 0, "a handler: %s", strerror(errno));
        close(fd);
    }
    return NULL;
}

/* Some threads run a job while others run a handler. */
Test(rights_thread_file_rights, back_and_forth, .timeout = 60)
{
    static const gid_t some[] = {0, 1234, 4321};
    pthread_t thread[THREADS];

    if (geteuid() != 0)
        cr_skip("only root can drop rights");
    make_files();
    cr_assert_eq(setgroups(3, some), 0);
    at_start = look();
    pthread_barrier_init(&together, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, job_and_handler, (void *)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    struct own now = look();
    cr_expect_eq(memcmp(&now, &at_start, sizeof now), 0);
}

static void drop(uint32_t cap)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct own o = look();

    o.caps[0].effective &= ~(1u << cap);
    o.caps[0].permitted &= ~(1u << cap);
    cr_assert_eq(syscall(SYS_capset, &header, o.caps), 0);
}

/* Causes of a refusal by the system. */
static const struct {
    const char *what;
    uint32_t cap; /* taken away, or 0 */
    int securebits;
} refusals[] = {
    {"no CAP_SETUID", CAP_SETUID, 0},
    {"no CAP_SETGID", CAP_SETGID, 0},
    {"capabilities stay", 0, SECBIT_NO_SETUID_FIXUP},
};

/* Names are not looked up then, and the rights are unchanged. */
static void *refused(void *arg)
{
    unsigned i = *(unsigned *)arg;
    struct nj_file_store_options o = {.root = scratch, .cache_bytes = 1 << 20, .drop_rights = true};
    struct nj_file_store *store;
    struct nj_file_job job = {.op = NJ_FILE_OPEN, .path = "all"}, list = {.op = NJ_FILE_LIST};
    char err[256];

    if (refusals[i].cap)
        drop(refusals[i].cap);
    else
        cr_assert_eq(prctl(PR_SET_SECUREBITS, refusals[i].securebits), 0);
    struct own before = look();
    cr_expect_not(nj_file_rights_drop(), "%s", refusals[i].what);
    struct own after = look();
    cr_expect_eq(memcmp(&after, &before, sizeof after), 0, "%s", refusals[i].what);
    cr_assert_eq(nj_file_store_open(&o, &store, err, sizeof err), 0, "%s", err);
    nj_file_store_do_job(store, &job);
    cr_expect_eq(job.result, NJ_FILE_DENIED, "%s", refusals[i].what);
    nj_file_store_do_job(store, &list);
    cr_expect_eq(list.result, NJ_FILE_DENIED, "%s", refusals[i].what);
    cr_expect_eq(nj_file_store_close(store), 0);
    return NULL;
}

Test(rights_thread_file_rights, when_the_system_refuses)
{
    static const gid_t some[] = {0, 1234, 4321};

    if (geteuid() != 0)
        cr_skip("only root can drop rights");
    make_files();
    cr_assert_eq(setgroups(3, some), 0);
    for (unsigned i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        run_on_thread(refused, &i);
}

/* Names are looked up with the other user's rights; open files are read with any rights. */
static void *store_of_others(void *arg)
{
    struct nj_file_store_options o = {.root = scratch, .cache_bytes = 1 << 20, .drop_rights = true};
    struct nj_file_store *store;
    char err[256];

    (void)arg;
    cr_assert_eq(nj_file_store_open(&o, &store, err, sizeof err), 0, "%s", err);
    for (unsigned i = 0; i < N; i++) {
        struct nj_file_job job = {.op = NJ_FILE_OPEN};
        strcpy(job.path, names[i]);
        nj_file_store_do_job(store, &job);
        bool all = i == 2 || i == 3;
        cr_expect_eq(job.result, all ? NJ_FILE_OK : NJ_FILE_DENIED, "%s", names[i]);
        nj_file_rights_restore();
        if (!job.object)
            continue;
        if (!job.object->bytes) {
            struct nj_file_job r = {.op = NJ_FILE_READ, .object = job.object, .n_bytes = 1};
            nj_file_store_do_job(store, &r);
            cr_expect_eq(r.result, NJ_FILE_OK);
            cr_expect_eq(setfsuid((uid_t)-1), 0, "a READ changes nothing");
            nj_ref_put(&r.chunk->ref);
        }
        nj_ref_put(&job.object->ref);
    }
    cr_expect_eq(nj_file_store_close(store), 0);
    return NULL;
}

Test(rights_thread_file_rights, jobs_of_a_store)
{
    if (geteuid() != 0)
        cr_skip("only root can drop rights");
    make_files();
    cr_assert_eq(truncate(at("open/all"), NJ_OBJECT_IN_MEMORY_MAX + 1), 0);
    run_on_thread(store_of_others, NULL);
}

/* A handler temporarily becomes another user, or sets groups: libc applies that to all threads, and
 * a thread gets back the rights that it had dropped. */
static const struct {
    const char *what;
    bool with_job_before;
} moments[] = {{"the first job is in that moment", false}, {"jobs before and after", true}};

static sem_t go, done;

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) < 0)
        ;
}

static void *before_and_after(void *arg)
{
    int err[N];

    if (*(const bool *)arg)
        cr_assert(nj_file_rights_drop());
    sem_post(&done);
    wait_for(&go);
    if (!*(const bool *)arg)
        cr_assert(nj_file_rights_drop());
    sem_post(&done);
    wait_for(&go);
    cr_assert(nj_file_rights_drop());
    read_all(err);
    for (unsigned i = 0; i < N; i++)
        cr_expect_eq(err[i], i == 2 || i == 3 ? 0 : EACCES, "%s", names[i]);
    nj_file_rights_restore();
    struct own now = look();
    cr_expect_eq(memcmp(&now, &at_start, sizeof now), 0);
    return NULL;
}

Test(rights_thread_file_rights, a_moment_as_another_user, .timeout = 60)
{
    static const gid_t some[] = {0, 1234, 4321};

    if (geteuid() != 0)
        cr_skip("only root can drop rights");
    make_files();
    cr_assert_eq(setgroups(3, some), 0);
    at_start = look();
    for (unsigned i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        pthread_t thread;
        bool arg = moments[i].with_job_before;
        sem_init(&go, 0, 0);
        sem_init(&done, 0, 0);
        cr_assert_eq(pthread_create(&thread, NULL, before_and_after, &arg), 0);
        wait_for(&done);
        cr_assert_eq(seteuid(1000), 0);
        sem_post(&go);
        wait_for(&done);
        cr_assert_eq(seteuid(0), 0);
        sem_post(&go);
        cr_assert_eq(pthread_join(thread, NULL), 0, "%s", moments[i].what);
    }
}

/* A thread that is back in a handler has the groups that the process has set last. */
static void *jobs_and_groups(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2; i++) {
        cr_assert(nj_file_rights_drop());
        sem_post(&done);
        wait_for(&go);
        int err[N];
        if (i == 0)
            cr_assert(nj_file_rights_drop());
        if (i == 0) {
            read_all(err);
            cr_expect_eq(err[1], EACCES, "of a group without the other user");
        }
        nj_file_rights_restore();
        struct own now = look();
        cr_expect_eq(memcmp(&now, &at_start, sizeof now), 0, "round %d", i);
    }
    return NULL;
}

Test(rights_thread_file_rights, other_groups_meanwhile, .timeout = 60)
{
    static const gid_t some[] = {0, 1234, 4321}, more[] = {0, 77, 1234, 4321};
    pthread_t thread;

    if (geteuid() != 0)
        cr_skip("only root can drop rights");
    make_files();
    cr_assert_eq(setgroups(3, some), 0);
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    cr_assert_eq(pthread_create(&thread, NULL, jobs_and_groups, NULL), 0);
    for (int i = 0; i < 2; i++) {
        wait_for(&done);
        cr_assert_eq(i == 0 ? setgroups(4, more) : setgroups(0, NULL), 0);
        at_start = look();
        sem_post(&go);
    }
    pthread_join(thread, NULL);
}

/* The process becomes another user's and root's again in the middle of a job. */
static struct {
    struct nj_file_store *store;
    struct nj_file_job job;
    struct gate gate;
} stuck;

static void *stuck_job(void *arg)
{
    (void)arg;
    gate = &stuck.gate;
    nj_file_store_do_job(stuck.store, &stuck.job);
    return NULL;
}

Test(rights_thread_file_rights, root_in_the_middle_of_a_job, .timeout = 60)
{
    struct nj_file_store_options o = {.root = scratch, .cache_bytes = 1 << 20, .drop_rights = true};
    char err[256];

    if (geteuid() != 0)
        cr_skip("only root can drop rights");
    make_files();
    cr_assert_eq(nj_file_store_open(&o, &stuck.store, err, sizeof err), 0, "%s", err);
    for (int list = 0; list < 2; list++) {
        pthread_t thread;
        atomic_fetch_add(&coarse_ahead_s, 2); /* the root is looked at first */
        stuck.job = (struct nj_file_job){.op = list ? NJ_FILE_LIST : NJ_FILE_OPEN};
        strcpy(stuck.job.path, list ? "closed" : "own");
        stuck.gate = (struct gate){.call = "stat"};
        sem_init(&stuck.gate.reached, 0, 0);
        sem_init(&stuck.gate.open, 0, 0);
        cr_assert_eq(pthread_create(&thread, NULL, stuck_job, NULL), 0);
        wait_for(&stuck.gate.reached);
        cr_assert_eq(seteuid(1000) | seteuid(0), 0);
        sem_post(&stuck.gate.open);
        pthread_join(thread, NULL);
        cr_expect_eq(stuck.job.result, NJ_FILE_BROKEN);
        cr_expect_null(stuck.job.object);
    }
    cr_expect_eq(nj_file_store_close(stuck.store), 0);
}

Test(rights_thread_file_rights, reach)
{
    bool root = geteuid() == 0;

    cr_assert_eq(chmod(scratch, 0700), 0);
    cr_expect_eq(nj_file_rights_can_reach(scratch), !root);
    cr_assert_eq(chmod(scratch, 0711), 0);
    cr_expect(nj_file_rights_can_reach(scratch));
    cr_expect(nj_file_rights_can_reach("/nowhere"), "another check reports that");
}
