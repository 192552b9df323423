/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy in force: reloads, hours, changes, and when a snapshot is freed. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "config/policy_snapshots.h"
#include "config/settings_validate.h"
#include "log/address_text.h"
#include "support/scratch.h"

#define NOW (100 * NJ_SEC)

TestSuite(config_policy_snapshots, .fini = scratch_remove);

/* Shards that adopt a snapshot on command. */
static struct {
    _Atomic(const struct nj_policy *) wanted;
    const struct nj_policy *used;
    _Atomic uint64_t adopted;
    uint32_t running;   /* bit i: a response, in slot i */
    uint32_t adopts_in; /* after this many polls; 0: on command */
} shards;

static atomic_bool done;
static char path[64], why[256];
static struct nj_diags faults, notes;
static struct nj_server_config given;
static struct nj_settings first;
static struct nj_policies *policies;

static void set(void *ctx, const struct nj_policy *policy)
{
    atomic_store(&shards.wanted, policy);
}

static void adopt(void);

static uint64_t adopted(void *ctx)
{
    if (shards.adopts_in > 0 && --shards.adopts_in == 0)
        adopt();
    return atomic_load(&shards.adopted);
}

static bool runs(void *ctx, uint8_t slot)
{
    return shards.running >> slot & 1;
}

/* The shards have stopped using the old snapshot; only then do they report it. */
static void adopt(void)
{
    shards.used = atomic_load(&shards.wanted);
    atomic_store(&shards.adopted, shards.used->version);
}

static void write_file(const char *text)
{
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static void start(const char *text, uint32_t minute)
{
    scratch_make();
    snprintf(path, sizeof path, "%s/policy", scratch);
    write_file(text);
    nj_server_config_init(&given);
    given.policy_file = path;
    given.addr[0] = "198.18.0.2/24";
    given.root = scratch;
    cr_assert_eq(nj_settings_from_config(&first, &given, why, sizeof why), 0, "%s", why);
    policies = nj_policies_new(&first, minute, why, sizeof why);
    cr_assert(policies, "%s", why);
    atomic_store(&shards.wanted, nj_policies_initial(policies));
    adopt();
    nj_policies_set_ops(policies, &(struct nj_policy_ops){NULL, set, adopted, runs});
}

static void finish(void)
{
    nj_policies_free(policies);
    nj_settings_free(&first);
    nj_diags_free(&faults);
    nj_diags_free(&notes);
}

static const struct nj_class *class_named(const char *name)
{
    for (uint32_t i = 0; i < shards.used->n_classes; i++)
        if (strcmp(shards.used->classes[i].name, name) == 0)
            return &shards.used->classes[i];
    return NULL;
}

static const struct nj_http_options *http(void)
{
    return shards.used->http;
}

static uint64_t read_again(void)
{
    nj_diags_free(&faults);
    nj_diags_free(&notes);
    struct nj_settings *next = nj_settings_read_again(&first, &faults, &notes, why, sizeof why);
    uint64_t version = next ? nj_policies_install(policies, next, 0, &faults) : 0;
    if (next && version == 0) {
        nj_settings_free(next);
        free(next);
    }
    return version;
}

static uint64_t reload(const char *text)
{
    write_file(text);
    uint64_t version = read_again();
    adopt();
    return version;
}

static uint64_t change(const char *params)
{
    uint64_t version = nj_policies_change(policies, params, NOW, why, sizeof why);
    adopt();
    return version;
}

Test(config_policy_snapshots, reloads)
{
    start("[class a]\npath = /a\n[class b]\npath = /b\n", 0);
    cr_expect(shards.used->version == 1 && class_named("a")->slot == 1);
    cr_expect_eq(reload("[class b]\npath = /b\n[class c]\npath = /c\n"), 2);
    cr_expect_eq(shards.used->version, 2);
    cr_expect(class_named("b")->slot == 2 && class_named("c")->slot == 3, "they keep their slots");
    cr_expect_eq(reload("[class b]\nrat = 1\n"), 0);
    cr_expect(faults.n > 0 && shards.used->version == 2);
    cr_expect_eq(reload("[class a]\npath = /a\n"), 3);
    cr_expect_eq(class_named("a")->slot, 1);
    unlink(path);
    cr_expect_eq(read_again(), 0);
    cr_expect(strstr(faults.text, "No such file"), "%s", faults.text);
    finish();
}

/* Is there a note that begins so, and says that a restart is needed? */
static bool is_noted(const char *begin)
{
    const char *at = notes.text ? strstr(notes.text, begin) : NULL;
    const char *end = at ? strchr(at, '\n') : NULL, *word = at ? strstr(at, "a restart") : NULL;

    return word && word < end;
}

Test(config_policy_snapshots, limits_change_and_the_rest_is_named)
{
    start("[limits]\nidle_timeout = 5s\n[network]\nmtu = 1400\n", 0);
    cr_expect_eq(http()->idle_timeout, 5 * NJ_SEC);
    cr_expect_eq(reload("[limits]\nmax_body = 1KiB\n\n[network]\nmtu = 1500\nrx-ring = 128\n"), 2);
    cr_expect_eq(http()->body_max, 1024);
    cr_expect_eq(http()->idle_timeout, 75 * NJ_SEC, "the default again");
    cr_expect(is_noted("policy:5: [network] mtu: 1400 -> 1500: "), "%s", notes.text);
    cr_expect(is_noted("policy:6: [network] rx_ring: not set -> 128: "), "%s", notes.text);
    cr_expect_eq(notes.n, 2);
    cr_expect_eq(nj_policies_settings(policies)->config->mtu, 1400, "what the server has");
    cr_expect_eq(reload("[eal]\narguments = -l 1\n[network]\nno_http1 = yes\n"), 3);
    cr_expect(is_noted("policy:2: [eal] changed: "), "%s", notes.text);
    cr_expect(is_noted("policy: [network] mtu: 1400 -> not set: "), "%s", notes.text);
    cr_expect(is_noted("policy:4: [network] no_http1: not set -> yes: "), "%s", notes.text);
    cr_expect(!http()->no_http1);
    cr_expect_eq(reload("[network]\nmtu = 1400\n[log]\naccess_log = log\nlog_format = json\n"), 4);
    cr_expect(is_noted("policy:4: [log] access_log: not set -> log: "), "%s", notes.text);
    cr_expect_eq(notes.n, 1);
    finish();
}

/* What a start would refuse, a reload refuses as a whole. */
Test(config_policy_snapshots, a_start_would_fail)
{
    start("", 0);
    cr_expect_eq(reload("[limits]\nidle_timeout = 5s\n[tls]\nkey = k\n"), 0);
    cr_expect(strstr(why, "there are 0 certificates and 1 keys"), "%s", why);
    cr_expect_eq(reload("[limits]\nidle_timeout = 5s\n[files]\nmime_types = /none\n"), 0);
    cr_expect(strstr(faults.text, "policy:4: mime_types = /none: "), "%s", faults.text);
    cr_expect_eq(shards.used->version, 1);
    cr_expect_eq(http()->idle_timeout, 75 * NJ_SEC);
    finish();
}

/* Classes `letter`0 and so on, instead of the previous ones. */
static const char *many(char letter, unsigned n)
{
    static char text[4000];

    text[0] = '\0';
    for (unsigned i = 0; i < n; i++)
        sprintf(text + strlen(text), "[class %c%u]\npath = /%u\n", letter, i, i);
    return text;
}

/* 31 classes at once, 31 others, and the first ones again. */
Test(config_policy_snapshots, slots_go_round)
{
    start(many('a', 31), 0);
    for (unsigned round = 0; round < 4; round++) {
        uint32_t slots = 0;
        cr_assert_neq(reload(many(round % 2 ? 'a' : 'b', 31)), 0);
        for (uint32_t i = 0; i < shards.used->n_classes; i++)
            slots |= 1u << shards.used->classes[i].slot;
        cr_expect_eq(slots, UINT32_MAX, "each has one of its own");
        cr_expect_eq(shards.used->classes[0].slot, 0);
    }
    finish();
}

/* Responses that run in a slot would count for the new class. */
Test(config_policy_snapshots, no_slot_with_downloads_is_given_anew)
{
    char where[128];

    start(many('a', 31), 0);
    uint8_t slot = class_named("a4")->slot;
    uint32_t slot_gen = class_named("a4")->slot_gen;
    shards.running = 1u << slot;
    cr_expect_neq(reload(many('b', 30)), 0);
    for (uint32_t i = 0; i < shards.used->n_classes; i++)
        cr_expect_neq(shards.used->classes[i].slot, slot, "%s", shards.used->classes[i].name);
    cr_expect_eq(reload(many('b', 31)), 0);
    snprintf(where, sizeof where, "%s:61: class b30: no free slot", path);
    cr_expect(strstr(faults.text, where), "%s", faults.text);
    cr_expect(shards.used->version == 2 && !class_named("b30"), "the policy in force stays");
    uint8_t of_b7 = class_named("b7")->slot;
    cr_expect_eq(class_named("b7")->slot_gen, slot_gen + 1, "it is the second in its slot");
    cr_expect_eq(reload(many('c', 31)), 0, "30 would have one");
    cr_expect_eq(reload("[class b7]\npath = /b\n"), 3);
    cr_expect_eq(class_named("b7")->slot, of_b7, "and no response was moved for them");
    cr_expect_neq(reload(many('a', 31)), 0, "the former classes get the slots");
    cr_expect_eq(class_named("a4")->slot, slot);
    cr_expect_eq(class_named("a4")->slot_gen, slot_gen);
    shards.running = 0;
    cr_expect_neq(reload(many('b', 31)), 0);
    finish();
}

Test(config_policy_snapshots, hours_come_and_go)
{
    start("[class a]\npath = /a\nrate = 1MiB/s\n[class a 22:00-06:00]\nrate = 2MiB/s\n"
          "[class n]\npath = /\nhours = 00:00-06:00\n",
          12 * 60);
    cr_expect_eq(nj_policies_apply_hours(policies, 12 * 60), 0, "nothing changes");
    cr_expect_eq(nj_policies_apply_hours(policies, 22 * 60), 2);
    adopt();
    cr_expect_eq(class_named("a")->total.rate, 2u << 20);
    uint8_t slot = 0;
    cr_expect_eq(nj_policies_apply_hours(policies, 3), 3, "the clock was set");
    adopt();
    cr_assert(class_named("n"));
    slot = class_named("n")->slot;
    cr_expect_neq(change("class=a,rate=5MiB/s"), 0);
    cr_expect_neq(nj_policies_apply_hours(policies, 12 * 60), 0);
    adopt();
    cr_expect(!class_named("n"));
    cr_expect_eq(class_named("a")->total.rate, 5u << 20, "a change outlives the hour");
    cr_expect_neq(nj_policies_apply_hours(policies, 0), 0);
    adopt();
    cr_expect_eq(class_named("n")->slot, slot);
    cr_expect_neq(reload("[class a]\npath = /a\nrate = 1MiB/s\n"), 0);
    cr_expect_eq(class_named("a")->total.rate, 1u << 20, "but not other hours of the file");
    cr_expect_neq(change("class=a,streams=3"), 0);
    cr_expect_eq(class_named("a")->total.rate, 1u << 20, "and it does not return");
    finish();
}

Test(config_policy_snapshots, changes_add_up)
{
    start("[server]\nrate = 8MiB/s\nburst = 64KiB\n[class a]\npath = /a\n", 0);
    cr_expect_eq(change("ceiling=9MiB/s"), 2);
    cr_expect(shards.used->total.rate == 8u << 20 && shards.used->total.ceiling == 9u << 20);
    cr_expect_eq(shards.used->total.burst, 65536);
    cr_expect_eq(change("rate=4MiB/s"), 3);
    cr_expect_eq(shards.used->total.ceiling, 4u << 20, "a rate alone is both");
    cr_expect_eq(shards.used->total.burst, 0);
    cr_expect_eq(change("class=a,streams=5,client_rate=1MiB/s"), 4);
    cr_expect_eq(change("class=a,client_burst=64KiB"), 5);
    cr_expect_eq(change("class=default,connections=7"), 6);
    cr_expect(class_named("a")->caps.streams_max == 5 && class_named("a")->client.rate == 1u << 20);
    cr_expect(class_named("a")->client.burst == 65536);
    cr_expect_eq(shards.used->classes[0].caps.conns_max, 7);
    static const char *const wrong[] = {"",
                                        "class=a",
                                        "class=b,rate=1",
                                        "rate",
                                        "rate=",
                                        "rate=x",
                                        "streams=5",
                                        "rate=2,ceiling=1",
                                        "class=a,class=a,rate=1",
                                        "class=a,connections=1",
                                        "class=a,path=/b",
                                        "rate=1,class=a"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(wrong); i++) {
        why[0] = '\0';
        cr_expect_eq(change(wrong[i]), 0, "%s", wrong[i]);
        cr_expect(strlen(why) > 8 && strcmp(why, "no memory") != 0, "%s: %s", wrong[i], why);
    }
    cr_expect_eq(shards.used->version, 6);
    finish();
}

static uint32_t n_changed(void)
{
    struct nj_limit_shown *shown;
    uint32_t n = nj_policies_limits(policies, &shown);

    cr_assert(shown);
    free(shown);
    return n;
}

Test(config_policy_snapshots, changes_survive_until_the_file_changes_them)
{
    start("[server]\nrate = 8MiB/s\n[class a]\npath = /a\nrate = 2MiB/s\n[class b]\npath = /b\n",
          0);
    cr_expect_gt(change("rate=4MiB/s"), 0);
    cr_expect_gt(change("class=a,rate=1MiB/s,streams=7"), 0);
    cr_expect_gt(change("class=b,rate=1MiB/s"), 0);
    cr_expect_eq(n_changed(), 4, "a limit each");
    cr_expect_gt(reload("[class new]\npath = /new\n[server]\nrate = 8MiB/s\n[class a]\npath = /x\n"
                        "rate = 3MiB/s\n"),
                 0);
    cr_expect_eq(shards.used->total.rate, 4u << 20, "the file has the same value");
    cr_expect_eq(class_named("a")->total.rate, 3u << 20, "the file has another value");
    cr_expect_eq(class_named("a")->caps.streams_max, 7, "another limit of the class");
    cr_expect_eq(n_changed(), 2, "b is no more");
    cr_expect_gt(reload("[server]\nrate = 8MiB/s\nburst = 64KiB\n"), 0);
    cr_expect_eq(shards.used->total.rate, 8u << 20, "rate, ceiling and burst are one limit");
    cr_expect_eq(n_changed(), 0);
    finish();
}

static uint64_t end_at(nj_ns now)
{
    uint32_t n = nj_policies_end_limits(policies, now);

    adopt();
    return n;
}

Test(config_policy_snapshots, changes_end_and_another_value_follows)
{
    struct nj_limit_shown *shown;

    start("[class a]\npath = /a\nrate = 8MiB/s\n", 0);
    cr_expect_gt(change("class=a,rate=4MiB/s"), 0);
    cr_expect_str_eq(why, "class a: rate 8MiB/s -> 4MiB/s, ceiling 8MiB/s -> 4MiB/s");
    cr_expect_gt(change("class=a,rate=1MiB/s,for=2h"), 0);
    cr_expect(strstr(why, "rate 4MiB/s -> 1MiB/s") && strstr(why, ", for 7200 s"), "%s", why);
    cr_expect_gt(change("class=a,streams=3,for=1m,then=9"), 0);
    cr_expect_eq(nj_policies_limits(policies, &shown), 3);
    cr_expect_eq(nj_limit_change_seconds_left(&shown[1].change, NOW + NJ_SEC), 7199);
    cr_expect(shown[1].has_follower && shown[1].follower.total.rate == 4u << 20);
    cr_expect_eq(shown[2].follower.caps.streams_max, 9);
    free(shown);
    cr_expect_gt(reload("[class b]\npath = /b\n[class a]\npath = /a\nrate = 8MiB/s\n"), 0);
    cr_expect_eq(end_at(NOW + 60 * NJ_SEC - 1), 0);
    cr_expect_eq(class_named("a")->caps.streams_max, 3);
    cr_expect_eq(end_at(NOW + 60 * NJ_SEC), 1);
    cr_expect_eq(class_named("a")->caps.streams_max, 9);
    cr_expect_eq(class_named("a")->total.rate, 1u << 20);
    cr_expect_eq(end_at(NOW + 7200 * NJ_SEC), 1);
    cr_expect_eq(class_named("a")->total.rate, 4u << 20, "the change before it");
    cr_expect_gt(change("class=a,rate=1MiB/s,for=1h"), 0);
    cr_expect_gt(change("class=a,rate=2MiB/s"), 0);
    cr_expect_eq(end_at(NOW + 7200 * NJ_SEC), 0, "nothing is left that could end");
    cr_expect_eq(class_named("a")->total.rate, 2u << 20);
    static const char *const wrong[] = {"class=a,rate=1,for=0s",
                                        "class=a,rate=1,for=x",
                                        "class=a,rate=1,then=2",
                                        "class=a,rate=1,for=367d",
                                        "class=a,for=1h",
                                        "class=a,rate=1,for=1h,then=x",
                                        "class=a,rate=1,streams=1,for=1h,then=2"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(wrong); i++)
        cr_expect_eq(change(wrong[i]), 0, "%s", wrong[i]);
    finish();
}

Test(config_policy_snapshots, changes_are_bounded)
{
    char text[64];

    start("[class a]\npath = /a\n", 0);
    for (unsigned i = 0; i < NJ_LIMIT_CHANGES_MAX; i++) {
        snprintf(text, sizeof text, "class=a,streams=%u,for=%um", i + 1, i + 1);
        cr_assert_gt(change(text), 0, "%s", why);
    }
    cr_expect_eq(change("class=a,streams=7,for=1h"), 0);
    cr_expect_str_eq(why, "128 limits are changed, which is the most");
    cr_expect_gt(change("class=a,streams=7"), 0, "it replaces all of them");
    cr_expect_eq(n_changed(), 1);
    finish();
}

static atomic_bool has_begun;

static void *install_next(void *next)
{
    atomic_store(&has_begun, true);
    cr_expect_gt(nj_policies_install(policies, next, 0, &faults), 0);
    adopt();
    atomic_store(&done, true);
    return NULL;
}

/* How often the supervisor looks at the policy while another one is built. */
static unsigned ticks_while_installing(void)
{
    struct nj_settings *next = nj_settings_read_again(&first, &faults, &notes, why, sizeof why);
    pthread_t thread;
    unsigned n = 0;

    cr_assert(next, "%s%s", faults.text, why);
    atomic_store(&has_begun, false);
    atomic_store(&done, false);
    pthread_create(&thread, NULL, install_next, next);
    while (!atomic_load(&done)) {
        nj_policies_end_blocks(policies, NOW);
        nj_policies_end_limits(policies, NOW);
        nj_policies_apply_hours(policies, 0);
        n += atomic_load(&has_begun);
    }
    pthread_join(thread, NULL);
    return n;
}

/* Sites, as lists of networks, are built before the lock is taken. In a round another thread may
 * have had the CPU. */
Test(config_policy_snapshots, ticks_do_not_wait_for_a_big_file, .timeout = 60)
{
    enum { N = 1000, ENOUGH = 100 };
    char *text = calloc(N, 160), *at = text;
    unsigned round = 0;

    for (unsigned i = 0; i < N; i++)
        at += sprintf(at, "[site s%u.example]\n[path s%u.example /a/]\nheader = set a: b\n", i, i);
    start("", 0);
    write_file(text);
    while (round < 100 && ticks_while_installing() < ENOUGH)
        round++;
    cr_expect_lt(round, 100, "ticks have waited");
    free(text);
    finish();
}

/* A snapshot stays while shards may use it. When there are too many, a reload is refused. */
Test(config_policy_snapshots, shards_that_do_not_adopt)
{
    start("", 0);
    for (unsigned i = 0; i < NJ_POLICIES_OLD_MAX; i++)
        cr_expect_neq(nj_policies_change(policies, "rate=1MiB/s", NOW, why, sizeof why), 0);
    cr_expect_eq(nj_policies_change(policies, "rate=1MiB/s", NOW, why, sizeof why), 0);
    cr_expect(strstr(why, "not applied"), "%s", why);
    cr_expect_eq(shards.used->version, 1, "and can still be read");
    adopt();
    cr_expect_eq(nj_policies_change(policies, "rate=2MiB/s", NOW, why, sizeof why),
                 NJ_POLICIES_OLD_MAX + 2);
    adopt();
    cr_expect_eq(shards.used->total.rate, 2u << 20);
    finish();
}

/* A caller with many changes in a row waits for the shards, and each change is made. */
Test(config_policy_snapshots, shards_that_adopt_soon)
{
    start("", 0);
    for (unsigned i = 0; i < NJ_POLICIES_OLD_MAX; i++)
        cr_expect_neq(nj_policies_change(policies, "rate=1MiB/s", NOW, why, sizeof why), 0);
    shards.adopts_in = 5;
    cr_expect_eq(nj_policies_change(policies, "burst=1MiB", NOW, why, sizeof why),
                 NJ_POLICIES_OLD_MAX + 2, "%s", why);
    cr_expect_eq(shards.used->version, NJ_POLICIES_OLD_MAX + 1);
    adopt();
    cr_expect_eq(shards.used->total.rate, 1u << 20, "earlier changes stay");
    finish();
}

/* Two o'clock is missing in one night in spring, and occurs twice in autumn. */
Test(config_policy_snapshots, local_minutes)
{
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    cr_expect_eq(nj_minute_of_day(1774745999), 119, "2026-03-29 00:59:59 UTC");
    cr_expect_eq(nj_minute_of_day(1774746000), 180);
    cr_expect_eq(nj_minute_of_day(1792889999), 179, "2026-10-25 00:59:59 UTC");
    cr_expect_eq(nj_minute_of_day(1792890000), 120);
    cr_expect_eq(nj_minute_of_day(1792882800), 60, "2026-10-24 23:00:00 UTC");
}

static void *lcore(void *unused)
{
    while (!atomic_load(&done)) {
        adopt();
        cr_assert(shards.used->n_classes >= 1 && shards.used->version > 0);
    }
    return NULL;
}

static void *telemetry(void *unused)
{
    char text[128];

    for (unsigned i = 0; i < 500; i++)
        while (nj_policies_change(policies, "class=a,rate=3MiB/s", NOW, text, sizeof text) == 0)
            sched_yield(); /* until the lcore has adopted some */
    return NULL;
}

Test(config_policy_snapshots, from_several_threads, .timeout = 60)
{
    pthread_t thread[3];

    start("[class a]\npath = /a\n[class b]\npath = /b\nhours = 00:00-01:00\n", 0);
    atomic_store(&done, false);
    pthread_create(&thread[0], NULL, lcore, NULL);
    pthread_create(&thread[1], NULL, telemetry, NULL);
    pthread_create(&thread[2], NULL, telemetry, NULL);
    for (unsigned i = 0; i < 200; i++) {
        nj_policies_apply_hours(policies, i % 2 ? 0 : 720);
        if (i % 20 == 0)
            read_again();
    }
    pthread_join(thread[1], NULL);
    pthread_join(thread[2], NULL);
    atomic_store(&done, true);
    pthread_join(thread[0], NULL);
    adopt();
    cr_expect(shards.used->version > 1000, "%lu", (unsigned long)shards.used->version);
    finish();
}

/* --- blocks --- */

static struct nj_net net(const char *a, unsigned bits)
{
    struct nj_net n = {.bits = (uint8_t)bits};

    cr_assert(nj_address_parse(a, strlen(a), &n.addr));
    return n;
}

static bool blocks(const char *a, unsigned bits, nj_ns until)
{
    const struct nj_block b = {net(a, bits), until};
    bool ok = nj_policies_block(policies, &b, why, sizeof why);

    adopt();
    return ok;
}

static bool is_blocked(const char *a)
{
    struct nj_net n = net(a, 128);
    return nj_policy_blocks(shards.used, &n.addr);
}

Test(config_policy_snapshots, blocks_outlive_reloads_and_end)
{
    struct nj_block list[NJ_BLOCKS_MAX];

    start("[class a]\npath = /a\n", 0);
    cr_expect(!shards.used->blocked && !nj_policy_filters_conns(shards.used));
    cr_expect(blocks("198.51.100.0", 96 + 24, 10 * NJ_SEC));
    cr_expect(blocks("2001:db8:1::", 48, NJ_NEVER) && blocks("192.0.2.1", 128, 5 * NJ_SEC));
    cr_expect(nj_policy_filters_conns(shards.used) && nj_policy_forbids_any(shards.used));
    cr_expect(is_blocked("198.51.100.77") && !is_blocked("198.51.101.77"));
    cr_expect(is_blocked("2001:db8:1:2::3") && !is_blocked("2001:db8:2::3"));
    cr_expect(is_blocked("192.0.2.1") && !is_blocked("192.0.2.2"));
    cr_expect_gt(reload("[class b]\npath = /b\n"), 0);
    cr_expect_gt(change("class=b,rate=1MiB/s"), 0);
    cr_expect(class_named("b") && is_blocked("198.51.100.77") && is_blocked("192.0.2.1"));
    cr_expect(blocks("198.51.100.0", 96 + 24, 20 * NJ_SEC), "another end");
    cr_expect_eq(nj_policies_blocks(policies, list), 3);
    cr_expect(list[0].until == 20 * NJ_SEC && list[2].until == 5 * NJ_SEC);
    cr_expect_eq(nj_policies_end_blocks(policies, 5 * NJ_SEC - 1), 0);
    cr_expect_eq(nj_policies_end_blocks(policies, 5 * NJ_SEC), 1);
    adopt();
    cr_expect(!is_blocked("192.0.2.1") && is_blocked("198.51.100.77"));
    const struct nj_net v6 = net("2001:db8:1::", 48);
    cr_expect(nj_policies_unblock(policies, &v6, why, sizeof why));
    cr_expect_not(nj_policies_unblock(policies, &v6, why, sizeof why));
    cr_expect_str_eq(why, "this network is not blocked: the list of blocks has those that are");
    cr_expect_eq(nj_policies_end_blocks(policies, NJ_NEVER - 1), 1);
    adopt();
    cr_expect(!shards.used->blocked && nj_policies_blocks(policies, list) == 0);
    cr_expect(class_named("b") != NULL);
    finish();
}

Test(config_policy_snapshots, blocks_are_bounded)
{
    struct nj_block list[NJ_BLOCKS_MAX];
    char a[32];

    start("", 0);
    for (uint32_t i = 0; i < NJ_BLOCKS_MAX; i++) {
        snprintf(a, sizeof a, "198.51.100.%u", i);
        cr_assert(blocks(a, 128, NJ_NEVER), "%s", why);
    }
    cr_expect(is_blocked(a));
    cr_expect_not(blocks("192.0.2.1", 128, NJ_NEVER));
    cr_expect_str_eq(why, "128 networks are blocked, which is the most");
    cr_expect(blocks(a, 128, NJ_SEC), "it is blocked already");
    cr_expect_eq(nj_policies_blocks(policies, list), NJ_BLOCKS_MAX);
    finish();
}
