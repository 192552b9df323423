/* SPDX-License-Identifier: BSD-3-Clause */
/* Which values of TZ are time zones, and the text about the zone of the process. */
#include <criterion/criterion.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/time_zone.h"
#include "support/scratch.h"

TestSuite(config_time_zone, .init = scratch_make, .fini = scratch_remove);

static void write_zone(const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FILE *f = fopen(path, "we");
    cr_assert(f && fputs(text, f) >= 0);
    fclose(f);
}

Test(config_time_zone, files_and_rules)
{
    static const char *const known[] = {"",
                                        ":",
                                        "UTC",
                                        "Here",
                                        ":Here",
                                        "CET-1",
                                        "EST5EDT",
                                        "<+0330>-3:30",
                                        "UTC0",
                                        "GMT+3",
                                        "NZST-12:00:00NZDT-13:00:00,M10.1.0,M3.3.0"};
    static const char *const unknown[] = {"Europe/Nowhere", "Text",     "Nowhere", "CE-1", "CET",
                                          "/nowhere",       "<+03>",    "<+-3>",   "CET-", "+1",
                                          "Here/",          ":missing", "5"};
    char path[128];

    write_zone("Here", "TZif2 and the rest");
    write_zone("Text", "hello");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        cr_expect(nj_time_zone_is_known(known[i], scratch), "%s", known[i]);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        cr_expect_not(nj_time_zone_is_known(unknown[i], scratch), "%s", unknown[i]);
    snprintf(path, sizeof path, "%s/Here", scratch);
    cr_expect(nj_time_zone_is_known(path, "/nowhere"));
    unlink(path);
    snprintf(path, sizeof path, "%s/Text", scratch);
    unlink(path);
}

/* What a call leaves on the stack, where the next one has its arrays. */
static __attribute__((noinline)) void fill_stack(void)
{
    volatile char left[4 * PATH_MAX];

    for (size_t i = 0; i < sizeof left; i++)
        left[i] = "/UTC"[i % 4];
}

Test(config_time_zone, links_that_lead_to_no_zone)
{
    static const struct {
        const char *target;
        bool is_broken;
    } links[] = {{"nowhere", true}, {"zoneinfo/UTC", false}, {"Here", false}, {"Text", true}};
    char link[128];

    write_zone("Here", "TZif2 and the rest");
    write_zone("Text", "hello");
    snprintf(link, sizeof link, "%s/localtime", scratch);
    cr_expect_not(nj_time_zone_is_broken_link(link), "there is none");
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        cr_assert_eq(symlink(links[i].target, link), 0);
        fill_stack();
        cr_expect_eq(nj_time_zone_is_broken_link(link), links[i].is_broken, "%s", links[i].target);
        unlink(link);
    }
}

static void expect_zone(const char *tz, const char *text, const char *warning)
{
    char name[NJ_TIME_ZONE_NAME_BYTES], zone[NJ_TIME_ZONE_TEXT_BYTES];
    struct nj_diags warnings = {0};

    setenv("TZ", tz, 1);
    tzset();
    nj_time_zone_name(name);
    nj_time_zone_format(name, 1750000000, zone);
    cr_expect_str_eq(zone, text);
    nj_time_zone_warn(&warnings);
    if (warning)
        cr_expect(warnings.text && strstr(warnings.text, warning), "%s", warnings.text);
    else
        cr_expect_null(warnings.text, "%s", warnings.text);
    nj_diags_free(&warnings);
}

Test(config_time_zone, the_zone_of_the_process)
{
    expect_zone("CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3 (now CEST, UTC+0200)",
                NULL);
    expect_zone("", "UTC", NULL);
    expect_zone("Europe/Nowhere", "UTC",
                "TZ: warning: Europe/Nowhere: there is no such time zone in /usr/share/zoneinfo: "
                "UTC applies");
}

/* As a server does that reads its policy again: Landlock may refuse the file by then. */
Test(config_time_zone, a_zone_that_cannot_be_opened_later)
{
    /* RFC 8536 3.1 and 3.2: one type of local time, 3600 s from UTC. */
    static const unsigned char zone[54] = {
        'T', 'Z', 'i', 'f', [39] = 1, [43] = 4, [46] = 0x0e, 0x10, [50] = 'C', 'E', 'T'};
    char path[64], name[NJ_TIME_ZONE_NAME_BYTES], text[NJ_TIME_ZONE_TEXT_BYTES], wanted[128];

    snprintf(path, sizeof path, "%s/zone", scratch);
    FILE *f = fopen(path, "we");
    cr_assert(f && fwrite(zone, sizeof zone, 1, f) == 1);
    fclose(f);
    setenv("TZ", path, 1);
    tzset();
    nj_time_zone_name(name);
    unlink(path);
    nj_time_zone_format(name, 1750000000, text);
    snprintf(wanted, sizeof wanted, "%s (now CET, UTC+0100)", path);
    cr_expect_str_eq(text, wanted);
}
