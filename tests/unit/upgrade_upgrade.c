/* SPDX-License-Identifier: BSD-3-Clause */
/* Both processes of an upgrade, without a device and without a server: one in this thread, which
 * runs, the other in a thread of its own, which starts. tests/e2e/test_upgrade.py has the rest. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dpdk/port.h"
#include "support/scratch.h"
#include "upgrade/upgrade.h"
#include "wire/iface.h"

TestSuite(upgrade_upgrade, .init = scratch_make, .fini = scratch_remove);

#define EVENTS_MAX 32u
#define TICK       (20 * NJ_MS)

struct process {
    struct nj_upgrade upgrade;
    char events[EVENTS_MAX + 1]; /* the phases that were set: R, K, T, Y, D; + and -: yields */
    uint32_t n_events;
    struct nj_dpdk_port dev;
    struct nj_iface iface;
    int channel;
    char why[512];
    _Atomic bool has_started;
    nj_ns now;
    const char *changes; /* of this process; NULL: it hands over none */
    char read[16];       /* those of the other one */
};

static char path[64];

static void note(struct process *p, char event)
{
    cr_assert_lt(p->n_events, EVENTS_MAX);
    p->events[p->n_events++] = event;
}

static void set_phase(void *ctx, enum nj_run_phase phase)
{
    static const char letter[] = {
        [NJ_PHASE_RUN] = 'R',   [NJ_PHASE_KEEP] = 'K',  [NJ_PHASE_TAKE] = 'T',
        [NJ_PHASE_YIELD] = 'Y', [NJ_PHASE_DRAIN] = 'D',
    };

    note(ctx, letter[phase]);
}

static void on_yield(void *ctx, bool yields)
{
    note(ctx, yields ? '+' : '-');
}

static int write_changes(void *ctx)
{
    const struct process *p = ctx;
    int fd = p->changes ? memfd_create("changes", MFD_CLOEXEC) : -1;

    if (fd >= 0)
        cr_assert_gt(write(fd, p->changes, strlen(p->changes)), 0);
    return fd;
}

static bool read_changes(void *ctx, int fd)
{
    struct process *p = ctx;

    cr_assert_gt(pread(fd, p->read, sizeof p->read - 1, 0), 0);
    return true;
}

static void init(struct process *p)
{
    const struct nj_upgrade_hooks hooks = {set_phase, on_yield, write_changes, read_changes, p};

    snprintf(path, sizeof path, "%s/upgrade", scratch);
    memset(p, 0, sizeof *p);
    p->dev.is_shareable = true;
    strcpy(p->dev.name, "net_tap0");
    strcpy(p->dev.driver, "net_tap");
    p->iface.n_addrs = 1;
    p->channel = -1;
    p->now = NJ_SEC;
    nj_upgrade_init(&p->upgrade, path, 60 * NJ_SEC, &hooks);
}

/* 0 or -1. */
static int start(struct process *p)
{
    const struct nj_upgrade_port port = {&p->dev, &p->iface, &p->channel};
    char program[] = "nightjar", *argv[] = {program, NULL};
    struct nj_upgrade *u = &p->upgrade;

    return nj_upgrade_contact(u, 1, argv, p->why, sizeof p->why) == 0 &&
                   nj_upgrade_agree(u, &port, 1, p->why, sizeof p->why) == 0 &&
                   nj_upgrade_listen(u, "", p->why, sizeof p->why) == 0 &&
                   nj_upgrade_begin(u, p->why, sizeof p->why) == 0
               ? 0
               : -1;
}

static void *start_in_thread(void *ctx)
{
    struct process *p = ctx;

    (void)start(p);
    atomic_store(&p->has_started, true);
    return NULL;
}

static void tick(struct process *p)
{
    p->now += TICK;
    nj_upgrade_tick(&p->upgrade, p->now);
}

/* `b` starts while `a` runs. */
static void start_beside(struct process *a, struct process *b)
{
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, start_in_thread, b), 0);
    while (!atomic_load(&b->has_started))
        tick(a);
    pthread_join(thread, NULL);
}

static struct process a, b;
static const char *changes_of_a;

static void take_over(void)
{
    init(&a);
    a.changes = changes_of_a;
    cr_assert_eq(start(&a), 0, "%s", a.why);
    cr_assert_not(nj_upgrade_shares_ports(&a.upgrade));
    init(&b);
    start_beside(&a, &b);
    cr_assert_str_empty(b.why);
    cr_assert_eq(b.upgrade.state, NJ_UPGRADE_TAKES);
    cr_assert(nj_upgrade_yields(&a.upgrade));
    cr_assert_str_eq(a.events, "KY+");
    cr_assert_str_empty(b.events, "the server chooses its first phase");
    cr_assert_geq(a.channel, 0);
    cr_assert_geq(b.channel, 0);
    cr_assert_leq(a.upgrade.deadline, a.now + 60 * NJ_SEC);
}

Test(upgrade_upgrade, to_the_end, .timeout = 60)
{
    take_over();
    cr_expect_not(nj_upgrade_may_end(&a.upgrade, a.now), "the other one does not know");
    tick(&b);
    cr_expect_str_eq(b.events, "K", "packets of no connection are its own from now on");
    tick(&a);
    cr_expect_not(nj_upgrade_may_end(&a.upgrade, a.now));
    tick(&b);
    tick(&a);
    cr_expect(nj_upgrade_may_end(&a.upgrade, a.now));
    nj_upgrade_close(&a.upgrade);
    tick(&b);
    cr_expect_str_eq(b.events, "KR-");
    cr_expect_not(nj_upgrade_shares_ports(&b.upgrade));
    cr_expect_eq(access(path, F_OK), 0, "the socket is the new one's");
    nj_upgrade_close(&b.upgrade);
    cr_expect_neq(access(path, F_OK), 0);
}

/* What management has changed goes with new connections, to and fro. */
Test(upgrade_upgrade, the_new_one_stops, .timeout = 60)
{
    changes_of_a = "of a";
    take_over();
    cr_expect_str_eq(b.read, "of a");
    b.changes = "of b";
    nj_upgrade_stop(&b.upgrade, b.now, b.now + NJ_SEC);
    cr_expect_str_eq(b.events, "Y");
    tick(&a);
    cr_expect_str_eq(a.events, "KY+T-");
    cr_expect_str_eq(a.read, "of b");
    cr_expect_eq(a.upgrade.state, NJ_UPGRADE_TAKES);
    cr_expect_eq(a.upgrade.deadline, NJ_NEVER);
    nj_upgrade_close(&b.upgrade);
    tick(&a);
    cr_expect_str_eq(a.events, "KY+T-R-");
    nj_upgrade_close(&a.upgrade);
}

Test(upgrade_upgrade, the_former_one_ends_at_once, .timeout = 60)
{
    take_over();
    nj_upgrade_close(&a.upgrade);
    tick(&b);
    cr_expect_str_eq(b.events, "R-");
    nj_upgrade_close(&b.upgrade);
}

Test(upgrade_upgrade, other_ports, .timeout = 60)
{
    init(&a);
    cr_assert_eq(start(&a), 0, "%s", a.why);
    init(&b);
    b.dev.mac.addr_bytes[0] = 2;
    start_beside(&a, &b);
    cr_expect(strstr(b.why, "interface or MAC address"), "%s", b.why);
    nj_upgrade_close(&b.upgrade);
    tick(&a);
    cr_expect_str_empty(a.events, "nothing was agreed");
    cr_expect_not(nj_upgrade_shares_ports(&a.upgrade));
    nj_upgrade_close(&a.upgrade);
}

Test(upgrade_upgrade, a_device_of_one_process, .timeout = 60)
{
    init(&a);
    a.dev.is_shareable = false;
    cr_assert_eq(start(&a), 0, "%s", a.why);
    init(&b);
    start_beside(&a, &b);
    cr_expect(strstr(b.why, "two processes cannot use at once"), "%s", b.why);
    nj_upgrade_close(&a.upgrade);
}
