/* SPDX-License-Identifier: BSD-3-Clause */
/* What management has changed, from one process to the next. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "config/settings_validate.h"
#include "log/address_text.h"
#include "log/log.h"
#include "mgmt/policy_handover.h"
#include "support/scratch.h"

#define NOW (1000 * NJ_SEC)

static char logged[1024];

static void take_line(void *ctx, enum nj_log_level level, const char *line)
{
    size_t n = strlen(logged);
    snprintf(logged + n, sizeof logged - n, "%s\n", line);
}

static void init(void)
{
    scratch_make();
    nj_log_set_sink((struct nj_log_sink){take_line, NULL});
}

TestSuite(mgmt_policy_handover, .init = init, .fini = scratch_remove);

struct process {
    struct nj_server_config config;
    struct nj_settings settings;
    struct nj_policies *policies;
    char path[80];
};

static void start(struct process *p, const char *name, const char *text)
{
    char why[256];

    snprintf(p->path, sizeof p->path, "%s/%s", scratch, name);
    FILE *f = fopen(p->path, "w");
    fputs(text, f);
    fclose(f);
    nj_server_config_init(&p->config);
    p->config.policy_file = p->path;
    p->config.addr[0] = "198.18.0.2/24";
    p->config.root = scratch;
    cr_assert_eq(nj_settings_from_config(&p->settings, &p->config, why, sizeof why), 0, "%s", why);
    p->policies = nj_policies_new(&p->settings, 0, why, sizeof why);
    cr_assert(p->policies, "%s", why);
}

static void end(struct process *p)
{
    nj_policies_free(p->policies);
    nj_settings_free(&p->settings);
}

static void change(struct process *p, const char *what)
{
    char why[256];
    cr_assert_gt(nj_policies_change(p->policies, what, NOW, why, sizeof why), 0, "%s", why);
}

static void block(struct process *p, const char *address, unsigned bits, nj_ns until)
{
    struct nj_block b = {.net.bits = (uint8_t)bits, .until = until};
    char why[256];

    cr_assert(nj_address_parse(address, strlen(address), &b.net.addr));
    cr_assert(nj_policies_block(p->policies, &b, why, sizeof why), "%s", why);
}

Test(mgmt_policy_handover, to_the_next_process)
{
    static struct process a, b;
    struct nj_block blocks[NJ_BLOCKS_MAX];
    struct nj_limit_shown *shown;
    char text[256];

    start(&a, "a",
          "[server]\nrate = 8MiB/s\n[class a]\npath = /a\nrate = 2MiB/s\n[class gone]\npath = "
          "/g\n[class joined]\npath = /j\n");
    start(&b, "b",
          "[class a]\npath = /a\nrate = 2MiB/s\n[server]\nrate = 9MiB/s\n[class joined]\npath = "
          "/j\n");
    change(&a, "rate=1MiB/s");
    change(&a, "class=a,rate=1MiB/s,ceiling=none,streams=3,action=forbid,for=1h");
    change(&a, "class=a,rate_after=1MiB,for=2h,then=none");
    change(&a, "class=gone,rate=1MiB/s");
    change(&a, "class=joined,rate=4MiB/s");
    change(&a, "class=joined,ceiling=3MiB/s"); /* each is valid by itself */
    block(&a, "198.51.100.0", 96 + 24, NOW + 90 * NJ_SEC);
    block(&a, "2001:db8::", 32, NJ_NEVER);
    block(&b, "192.0.2.1", 128, NJ_NEVER);
    int fd = nj_mgmt_write_changes(a.policies, NOW + NJ_SEC);
    cr_assert_geq(fd, 0);
    nj_mgmt_read_changes(b.policies, fd, NOW + 2 * NJ_SEC);
    close(fd);
    cr_expect(strstr(logged, "2 blocks and 5 changed limits stay in force"), "%s", logged);
    cr_expect(strstr(logged, "2 blocks or changed limits of the other process end"), "%s", logged);
    cr_assert_eq(nj_policies_blocks(b.policies, blocks), 2, "in place of its own");
    cr_expect_eq(blocks[0].until, NOW + 91 * NJ_SEC, "89 s were left");
    cr_expect(blocks[0].net.bits == 96 + 24 && blocks[1].until == NJ_NEVER);
    cr_assert_eq(nj_policies_limits(b.policies, &shown), 5);
    cr_assert(nj_limit_change_format(&shown[0].change, NOW + 2 * NJ_SEC, text, sizeof text));
    cr_expect_str_eq(text, "class=a,rate=1MiB/s,ceiling=none,for=3599s");
    cr_assert(nj_limit_change_format(&shown[3].change, NOW + 2 * NJ_SEC, text, sizeof text));
    cr_expect_str_eq(text, "class=a,rate_after=1MiB,for=7199s,then=none");
    cr_assert(nj_limit_change_format(&shown[4].change, NOW + 2 * NJ_SEC, text, sizeof text));
    cr_expect_str_eq(text, "class=joined,rate=4MiB/s,ceiling=3MiB/s");
    free(shown);
    end(&a);
    end(&b);
}

/* Of another version, or of no nightjar at all. */
Test(mgmt_policy_handover, records_that_are_none)
{
    static const char *const text[] = {
        "", "nightjar changes 2\nblock 192.0.2.1 0\n",
        "nightjar changes 1\nblock\nblock x 1\nblock 192.0.2.1/33 1\nblock 192.0.2.1/24 1\n"
        "block 192.0.2.1 1x\nlimit\nlimit x rate=1\nlimit 0 rate=1\nlimit 0 class=none,rate=1\n"
        "other 1\n"};
    struct nj_block blocks[NJ_BLOCKS_MAX];
    struct nj_limit_shown *shown;
    static struct process a;

    start(&a, "a", "");
    for (size_t i = 0; i < NJ_ARRAY_LEN(text); i++) {
        int fd = memfd_create("record", MFD_CLOEXEC);
        cr_assert_eq(write(fd, text[i], strlen(text[i])), (ssize_t)strlen(text[i]));
        nj_mgmt_read_changes(a.policies, fd, NOW);
        close(fd);
        cr_expect_eq(nj_policies_blocks(a.policies, blocks), 0, "%s", text[i]);
        cr_expect_eq(nj_policies_limits(a.policies, &shown), 0, "%s", text[i]);
        free(shown);
    }
    cr_expect(strstr(logged, "that this version understands"), "%s", logged);
    end(&a);
}
