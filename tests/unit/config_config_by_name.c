/* SPDX-License-Identifier: BSD-3-Clause */
/* Options by name: every accepted value, where it is stored, and the messages for others. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/units.h"
#include "config/config_by_name.h"
#include "config/settings_validate.h"

static struct nj_server_config c;
static char why[256];

static int set(const char *name, const char *value)
{
    why[0] = '\0';
    return nj_server_config_set(&c, name, value, why, sizeof why);
}

static void refused(const char *name, const char *value, const char *expected)
{
    char line[256];

    snprintf(line, sizeof line, "--%s %s: expected %s", name, value, expected);
    cr_expect_eq(set(name, value), -1, "--%s %s was taken", name, value);
    cr_expect_str_eq(why, line);
}

static void init(void)
{
    nj_server_config_init(&c);
}

TestSuite(config_config_by_name, .init = init);

/* `expected` NULL: it is taken. */
struct option {
    const char *name, *value, *expected;
};

static void give(const struct option *o, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (o[i].expected)
            refused(o[i].name, o[i].value, o[i].expected);
        else
            cr_expect_eq(set(o[i].name, o[i].value), 0, "%s", why);
    }
}

Test(config_config_by_name, idle)
{
    static const struct option options[] = {
        {"idle", "interrupt", NULL},
        {"idle", "nap", "sleep, spin, pause or interrupt"},
    };

    give(options, NJ_ARRAY_LEN(options));
    cr_expect_eq(c.idle, NJ_IDLE_INTERRUPT);
}

Test(config_config_by_name, numbers)
{
    static const struct option options[] = {
        {"vlan", "4094", NULL},
        {"listen", "8080", NULL},
        {"port", "3", NULL},
        {"max-connections", "16777216", NULL},
        {"connections-per-client", "7", NULL},
        {"streams-per-client", "none", NULL},
        {"mtu", "9000", NULL},
        {"rx-ring", "64", NULL},
        {"tx-ring", "8192", NULL},
        {"mtu", "9001", "a number of bytes from 1280 to 9000"},
        {"mtu", "1279", "a number of bytes from 1280 to 9000"},
        {"rx-ring", "63", "a number of descriptors from 64 to 8192"},
        {"tx-ring", "8193", "a number of descriptors from 64 to 8192"},
        {"listen", "0", "a port from 1 to 65535"},
        {"requests-per-client", "0", "a number from 1 to 1073741824, or none"},
        {"requests-per-client", "99999999999999999999", "a number from 1 to 1073741824, or none"},
        {"max-headers", "129", "a number from 8 to 128"},
    };

    give(options, NJ_ARRAY_LEN(options));
    cr_expect(c.listen_port == 8080 && strcmp(c.vlan[0], "4094") == 0 &&
              strcmp(c.port[0], "3") == 0);
    cr_expect(c.mtu == 9000 && c.rx_ring == 64 && c.tx_ring == 8192);
    cr_expect(c.conns_max == 1u << 24 && c.connections_per_client == 7);
    cr_expect_eq(c.streams_per_client, NJ_NONE32);
}

Test(config_config_by_name, quantities)
{
    static const struct option options[] = {
        {"rate", "20MiB/s", NULL},
        {"rate-per-client", "100Mbit/s", NULL},
        {"rate-per-request", "none", NULL},
        {"rate-after", "64KiB", NULL},
        {"max-header-size", "8KiB", NULL},
        {"cache", "0", NULL},
        {"drain-timeout", "0", NULL},
        {"cache", "10", "a unit, e.g. 10MiB"},
        {"cache", "1048576", "a unit, e.g. 1048576B"},
        {"cache", "4KiB", "a size such as 64MiB or 1GiB, 1MiB to 16384GiB, or 0"},
        {"cache", "99999GiB", "a size such as 64MiB or 1GiB, 1MiB to 16384GiB, or 0"},
        {"drain-timeout", "30", "a unit, e.g. 30s"},
        {"drain-timeout", "100000", "a unit, e.g. 100000ms"},
        {"rate-after", "65536", "a unit, e.g. 65536B"},
        {"rate", "5000", "a unit, e.g. 5000B/s"},
        {"send-timeout", "1m", NULL},
        {"rate", "20MiB", NJ_RATE_SYNTAX ", or none"},
        {"rate", "0", NJ_RATE_SYNTAX ", or none"},
        {"rate", "", NJ_RATE_SYNTAX ", or none"},
        {"rate", "-1", NJ_RATE_SYNTAX ", or none"},
        {"rate", "1025GiB/s", NJ_RATE_SYNTAX ", or none"},
        {"max-header-size", "33KiB", "a size, 1KiB to 32KiB"},
        {"idle-timeout", "0", "a time such as 500ms or 10s, 100ms to 24h"},
    };

    give(options, NJ_ARRAY_LEN(options));
    cr_expect_eq(c.rate, 20u << 20);
    cr_expect_eq(c.rate_per_client, 12500000);
    cr_expect_eq(c.rate_per_request, NJ_NONE);
    cr_expect(c.rate_after == 65536 && c.max_header_size == 8192 && c.cache_bytes == 0);
    cr_expect(c.send_timeout_s == 60);
}

Test(config_config_by_name, words_texts_and_switches)
{
    cr_expect_eq(set("symlinks", "owner"), 0);
    cr_expect_eq(set("log-format", "json"), 0);
    cr_expect_eq(set("strategy", "pec"), 0);
    cr_expect_eq(set("index", "home.html"), 0);
    cr_expect_eq(set("listing", NULL), 0);
    cr_expect(c.symlinks == NJ_SYMLINKS_OWNER && c.log_format == NJ_LOG_JSON && c.listing);
    cr_expect(c.strategy == NJ_RUN_PEC && strcmp(c.index, "home.html") == 0);
    cr_expect_not(c.no_http1);
    cr_expect_eq(set("no-http1", NULL), 0);
    cr_expect(c.no_http1);
    refused("symlinks", "own", "none, owner or beneath");
    refused("strategy", "ewyk|pc", "ewyk, pc or pec");
    refused("strategy", "", "ewyk, pc or pec");
    cr_expect_eq(nj_server_config_takes("listing"), 0);
    cr_expect_eq(nj_server_config_takes("index"), 1);
    cr_expect_eq(nj_server_config_takes("indexes"), -1);
    cr_expect_eq(set("indexes", "x"), -1);
    cr_expect_str_eq(why, "--indexes: there is no such option");
    cr_expect_eq(set("index", NULL), -1);
    cr_expect_str_eq(why, "--index: expected a value");
}

Test(config_config_by_name, several)
{
    for (unsigned i = 0; i < NJ_SERVER_ADDRS_MAX; i++)
        cr_expect_eq(set("addr", "198.18.0.2/24"), 0);
    refused("addr", "198.18.0.3/24", "at most 32 of them");
    cr_expect_eq(set("error-page", "404=/a"), 0);
    cr_expect_eq(set("error-page", "403=/b"), 0);
    cr_expect(strcmp(c.error_page[1], "403=/b") == 0 && !c.error_page[2]);
}

/* The command line has precedence over the file, and the file over the defaults. */
Test(config_config_by_name, the_file_comes_second)
{
    cr_expect_eq(nj_config_set_file_option(&c, "listing", "no", why, sizeof why), 0);
    cr_expect(!c.listing);
    cr_expect_eq(nj_config_set_file_option(&c, "listing", "yes", why, sizeof why), 0);
    cr_expect(c.listing);
    cr_expect_eq(nj_config_set_file_option(&c, "listing", "on", why, sizeof why), -1);
    cr_expect_str_eq(why, "yes or no");
    cr_expect_eq(c.max_body, 0);
    cr_expect_eq(nj_config_set_file_option(&c, "max-body", "1 KiB", why, sizeof why), -1);
    cr_expect_str_eq(why, "a size such as 64KiB or 10MiB, at least 1B, or none");
    cr_expect_eq(nj_config_set_file_option(&c, "max-body", "1KiB", why, sizeof why), 0);
    cr_expect(c.max_body == 1024);
    uint32_t n = 0;
    while (nj_config_file_option_at(n))
        n++;
    cr_expect_eq(n, 67);
}

Test(config_config_by_name, hours)
{
    static const char *const bad[] = {"22:00",       "22:00-22:00", "24:00-06:00",  "22:60-06:00",
                                      "22:00-25:00", "22-06",       "22:00-06:00 ", "2:00-06:000"};
    uint16_t m[2];

    cr_expect(nj_parse_time_range("22:00-06:00", m) && m[0] == 1320 && m[1] == 360);
    cr_expect(nj_parse_time_range("00:00-24:00", m) && m[0] == 0 && m[1] == 1440);
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++)
        cr_expect(!nj_parse_time_range(bad[i], m), "%s", bad[i]);
}

Test(config_config_by_name, nothing_but_numbers_with_units)
{
    static const char *const bad[] = {"",    " 1", "1 ",   "+1",    "-1",  "0x10",  "nan",
                                      "inf", ".",  "1kib", "1e999", "1,5", "1KiB ", "MiB"};
    uint64_t n;

    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++)
        cr_expect(!nj_parse_bytes(bad[i], &n), "'%s'", bad[i]);
    cr_expect(nj_parse_bytes("1.5KiB", &n) && n == 1536);
}

/* --help shows the defaults that nj_server_config_init() sets. */
Test(config_config_by_name, default_texts)
{
    char text[64];
    uint32_t n = 0;

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (!nj_option_has_field(o) || !nj_config_format_option(&c, o->name, text, sizeof text))
            continue;
        cr_expect(o->default_text && strcmp(o->default_text, text) == 0, "%s: %s", o->name, text);
        n++;
    }
    cr_expect_eq(n, 10);
}

/* Each option has the fields that its kind needs, and a unique name. */
Test(config_config_by_name, table)
{
    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        cr_expect(o->help && (o == nj_options) <= (o->group != NULL), "%s", o->name);
        if (o->kind == NJ_OPTION_KEY) {
            cr_expect(o->section && o->value, "%s", o->name);
            continue;
        }
        cr_expect_eq(nj_option_takes_value(o), o->value || o->kind == NJ_OPTION_WORD, "%s",
                     o->name);
        cr_expect_eq(nj_server_config_takes(o->name),
                     nj_option_has_field(o) ? nj_option_takes_value(o) : -1, "%s", o->name);
        cr_expect_eq(o->kind >= NJ_OPTION_NUMBER, o->expected != NULL, "%s", o->name);
        cr_expect(o->kind < NJ_OPTION_NUMBER || o->min < o->max, "%s", o->name);
        for (const struct nj_option *other = nj_options; other < o; other++)
            cr_expect(other->kind == NJ_OPTION_KEY || strcmp(o->name, other->name) != 0, "%s",
                      o->name);
        if (o->kind != NJ_OPTION_WORD)
            continue;
        uint32_t n_words = 1;
        for (const char *p = o->expected; (p = strchr(p, '|')); p++)
            n_words++;
        cr_expect_eq(n_words, (uint32_t)(o->max - o->min) + 1, "%s", o->name);
    }
}

/* --check prints the options of a section in one line, so they are contiguous in the table. */
Test(config_config_by_name, sections_are_contiguous)
{
    const char *seen[16] = {NULL}, *section = "";
    uint32_t n = 0;

    for (uint32_t i = 0; nj_config_file_option_at(i); i++) {
        const char *of = nj_config_file_option_at(i)->section;
        if (strcmp(of, section) == 0)
            continue;
        for (uint32_t k = 0; k < n; k++)
            cr_expect_str_neq(of, seen[k]);
        cr_assert_lt(n, NJ_ARRAY_LEN(seen));
        seen[n++] = section = of;
    }
    cr_expect_gt(n, 1);
}

static void site(const char *expected)
{
    struct nj_settings s;
    int rc = nj_settings_from_partial_config(&s, &c, why, sizeof why);

    cr_expect_eq(rc, expected ? -1 : 0, "%s", why);
    if (expected)
        cr_expect_str_eq(why, expected);
    if (rc == 0)
        nj_settings_free(&s);
    init();
}

#define PAGE                                                                                       \
    "expected a status from 400 to 599 and a file below the root, e.g. 404=/404.html or 404 "      \
    "/404.html"

Test(config_config_by_name, files)
{
    site(NULL);
    c.index = "a/b";
    site("--index a/b: expected the name of one file, e.g. index.html; index in [site NAME] takes "
         "several");
    c.index = ".a";
    site("--index .a: expected the name of one file, e.g. index.html; index in [site NAME] takes "
         "several");
    c.index = "..";
    site("--index ..: expected the name of one file, e.g. index.html; index in [site NAME] takes "
         "several");
    c.cache_control = "a\r\nb: c";
    site("--cache-control: expected a valid header field value, e.g. max-age=3600");
    c.cache_control = "max-age=3600, public";
    site(NULL);
    c.mime_types = "/nonexistent";
    site("--mime-types /nonexistent: No such file or directory");
    c.default_type = "text";
    site("--default-type text: expected a media type such as text/html");
    c.default_type = "text/plain;charset=utf-8";
    c.charset = NJ_CHARSET_UTF_8;
    c.dotfiles = ".treeinfo, .git";
    site(NULL);
    c.dotfiles = ".treeinfo,git";
    site("--dotfiles .treeinfo,git: expected up to 16 names that begin with a dot, separated by "
         "commas, e.g. .well-known,.treeinfo, or none");
    c.charset = (enum nj_charset)9;
    site("--charset: expected none or utf-8");
    static const char *const bad[] = {"404",     "399=/a",    "600=/a",    "404=a",
                                      "404=/",   "404=/../a", "404=/a//b", "404=/a/",
                                      "404=//a", "404=/a/.",  "0404=/a"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        char line[128];
        snprintf(line, sizeof line, "--error-page %s: " PAGE, bad[i]);
        c.error_page[0] = bad[i];
        site(line);
    }
    c.error_page[0] = "404=/.a/..b/c";
    site(NULL);
    c.error_page[0] = "404=/a";
    c.error_page[1] = "404=/b";
    site("--error-page 404=/b: there is another one for 404");
    c.root = "/etc";
    c.error_page[0] = "404=/no/such/file";
    site("--error-page 404=/no/such/file: there is no such file below /etc");
    c.root = "/etc";
    c.error_page[0] = "404=/passwd";
    site(NULL);
}

Test(config_config_by_name, requests)
{
    c.max_headers = 129;
    site("--max-headers: expected a number from 8 to 128");
    c.max_header_size = 1000;
    site("--max-header-size: expected a size, 1KiB to 32KiB");
    c.send_timeout_s = -1;
    site("--send-timeout: expected a time such as 500ms or 10s, 100ms to 24h");
    c.rate = NJ_RATE_MAX + 1;
    site("--rate: expected " NJ_RATE_SYNTAX ", or none");
    c.symlinks = (enum nj_symlinks)9;
    site("--symlinks: expected none, owner or beneath");
    c.rate = NJ_NONE;
    c.max_headers = 8;
    site(NULL);
}

Test(config_config_by_name, nearest_option)
{
    static const char *const more[] = {"check", "version", NULL};

    cr_expect_str_eq(nj_server_config_near("ratte", more), "rate");
    cr_expect_str_eq(nj_server_config_near("max_connections", more), "max-connections");
    cr_expect_str_eq(nj_server_config_near("chekc", more), "check");
    cr_expect_str_eq(nj_server_config_near("adr", NULL), "addr");
    cr_expect_null(nj_server_config_near("qqqqqqqqqqqqqq", more));
    cr_expect_null(nj_server_config_near("", more));
}

/* The shown text has the syntax of the file. */
Test(config_config_by_name, shown)
{
    static const char *const values[][2] = {
        {"max-body", "1MiB"},          {"max-headers", "64"},   {"header-timeout", "500ms"},
        {"send-timeout", "90s"},       {"min-rate", "8Mbit/s"}, {"index", "i.html"},
        {"error-page", "404=/4.html"}, {"symlinks", "owner"},   {"log-format", "json"},
    };
    char text[64];

    cr_expect(!nj_config_format_option(&c, "max-body", text, sizeof text));
    for (size_t i = 0; i < NJ_ARRAY_LEN(values); i++) {
        cr_assert_eq(set(values[i][0], values[i][1]), 0, "%s", why);
        cr_assert(nj_config_format_option(&c, values[i][0], text, sizeof text), "%s", values[i][0]);
        cr_expect_str_eq(text, values[i][1]);
    }
    cr_assert_eq(set("error-page", "403=/4.html"), 0);
    cr_expect(nj_config_format_option(&c, "error-page", text, sizeof text));
    cr_expect_str_eq(text, "404=/4.html, 403=/4.html");
    cr_assert_eq(set("listing", NULL), 0);
    cr_expect(nj_config_format_option(&c, "listing", text, sizeof text));
    cr_expect_str_eq(text, "yes");
    cr_assert_eq(set("max-body", "none"), 0);
    cr_expect(nj_config_format_option(&c, "max-body", text, sizeof text));
    cr_expect_str_eq(text, "none");
    cr_expect(!nj_config_format_option(&c, "no-such-thing", text, sizeof text));
}
