/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy file: the resulting policy, and the messages for errors. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "config/policy_file.h"
#include "log/address_text.h"
#include "support/scratch.h"

static struct nj_diags faults;
static struct nj_server_config config;
static struct nj_policy p;
static struct nj_policy_file *f;

static void fini(void)
{
    nj_policy_file_free(f);
    nj_diags_free(&faults);
    f = NULL;
}

TestSuite(config_policy_file, .fini = fini);

static bool parse_bytes(const char *text, size_t n)
{
    fini();
    nj_server_config_init(&config);
    f = nj_policy_file_parse("p", text, n, &config, &faults);
    return f != NULL;
}

static void parse(const char *text)
{
    cr_assert(parse_bytes(text, strlen(text)), "%s", faults.text);
}

static void make(uint32_t minute)
{
    nj_policy_compile(f, &config, NULL, nj_policy_active_hours_mask(f, minute), &p);
}

static const struct nj_class *class_named(const char *name)
{
    for (uint32_t i = 0; i < p.n_classes; i++)
        if (strcmp(p.classes[i].name, name) == 0)
            return &p.classes[i];
    return NULL;
}

/* `told`: all expected lines, without "p:". */
static const struct {
    const char *text, *told;
} bad[] = {
    {"x = 1\n", "1: x: expected a [SECTION] before it\n"},
    {"[server]\n\n  rate\n", "3: rate: expected KEY = VALUE or [SECTION]\n"},
    {"[server]\nrate =\n", "2: rate: expected a value of 1 to 2047 characters\n"},
    {"[server]\nrate = # 5\n", "2: rate: expected a value of 1 to 2047 characters\n"},
    {"[server]\n= 5\n", "2: the key before =: expected 1 to 63 characters\n"},
    {"[server\nrate = 5", "1: unterminated section header: expected [NAME]\n"},
    {"[server] x\n", "1: unterminated section header: expected [NAME]\n"},
    {"[]\n", "1: section name: expected 1 to 511 characters without [ and #\n"},
    {"[sever]\n", "1: [sever]: unknown section: did you mean [server]?\n"},
    {"[clas x]\n", "1: [clas x]: unknown section: did you mean [class NAME]?\n"},
    {"[qqqqqqqqqqqqq]\nx = 1\n",
     "1: [qqqqqqqqqqqqq]: expected eal, network, tls, files, storage, "
     "limits, log, user, process, management, server, client, listen NAME, list "
     "NAME, class NAME, site NAME or path SITE PATH\n"},
    {"[class]\n", "1: [class]: expected a name after it\n"},
    {"[class a-b]\npath = /\n", "1: [class a-b]: expected a name of up to 31 letters, digits and "
                                "_\n"},
    {"[class a]\npath = /\n[class  a]\n", "3: [class  a]: duplicate; first set on line 1\n"},
    {"[class a 1:00-2:00]\n",
     "1: [class a 1:00-2:00]: expected hours such as 22:00-06:00 after the name, or nothing\n"},
    {"[class a 01:00-02:00]\n",
     "1: [class a 01:00-02:00]: expected a class that also has a section without hours\n"},
    {"[server]\nratte = 5\n", "2: ratte: unknown in [server]: did you mean rate?\n"},
    {"[server]\nclient_rate = 5\n", "2: client_rate: unknown in [server]: it belongs in "
                                    "[class NAME]\n"},
    {"[server]\nqqqqqqqqqqqqq = 5\n", "2: qqqqqqqqqqqqq: unknown in [server]: expected a key that "
                                      "nightjar.conf(5) lists for it\n"},
    {"[limits]\nuser = www\n", "2: user: unknown in [limits]: it belongs in [user] as name\n"},
    {"[tls]\ntls_cert = a\n", "2: tls_cert: unknown in [tls]: did you mean cert?\n"},
    {"[files]\nport = 1\n",
     "2: port: unknown in [files]: it belongs in [network] or [listen NAME] or [tls]\n"},
    {"[server]\nrate-per-client = 1B/s\n",
     "2: rate_per_client: unknown in [server]: it belongs in [class default] as client_rate\n"},
    {"[eal]\nargumens = -l 1\n", "2: argumens: unknown in [eal]: did you mean arguments?\n"},
    {"[network]\nmtu = 1\n", "2: mtu = 1: expected a number of bytes from 1280 to 9000\n"},
    {"[process]\ndrain_timeout = 30\n", "2: drain_timeout = 30: expected a unit, e.g. 30s\n"},
    {"[storage]\ncache = 10\n", "2: cache = 10: expected a unit, e.g. 10MiB\n"},
    {"[storage]\ncache = 99999GiB\n", "2: cache = 99999GiB: expected a size such as 64MiB or 1GiB, "
                                      "1MiB to 16384GiB, or 0\n"},
    {"[server]\nrate = 5000\n", "2: rate = 5000: expected a unit, e.g. 5000B/s\n"},
    {"include = a\n", "1: include: expected in a file only\n"},
    {"[limits]\naccess_log = -\n", "2: access_log: unknown in [limits]: it belongs in [log]\n"},
    {"[class a]\npath = /\nmax_body = 1\n",
     "3: max_body: unknown in [class a]: it belongs in [limits]\n"},
    {"[files]\nstreams = 1\n", "2: streams: unknown in [files]: it belongs in [class NAME]\n"},
    {"[server]\nrate = 1B/s\nrate = 2B/s\n",
     "3: rate: duplicate in [server]; first set on line 2\n"},
    {"[limits]\nmax-body = 1B\nmax_body = 2B\n",
     "3: max_body: duplicate in [limits]; first set on line 2\n"},
    {"[server]\nburst = 100B\n",
     "2: burst = 100B: expected a size such as 64KiB, 5840B to 1GiB, or none\n"},
    {"[server]\nrate = 2B/s\nceiling = 1B/s\n", "1: [server]: rate must not exceed ceiling\n"},
    {"[server]\ndeny = x\n",
     "2: deny = x: there is no [list x]: expected names of [list NAME] sections\n"},
    {"[server]\ndeny_action = serve\n", "2: deny_action = serve: expected drop, reset or "
                                        "forbid\n"},
    {"[client]\nby = header\n", "2: by = header: expected address, header NAME or cookie NAME\n"},
    {"[client]\nby = cookie a b\n",
     "2: by = cookie a b: expected address, header NAME or cookie NAME\n"},
    {"[client]\nprefix4 = 33\n", "2: prefix4 = 33: expected a number of bits from 8 to 32\n"},
    {"[list a]\n", "1: [list a]: expected networks = or file =\n"},
    {"[list a]\nnetworks = 192.0.2.0/24,\n",
     "2: empty item between commas: expected an address or a "
     "network, e.g. 192.0.2.0/24 or 2001:db8::/32\n"},
    {"[list a]\nnetworks = 192.0.2.0/33\n", "2: 192.0.2.0/33: expected an address or a network, "
                                            "e.g. 192.0.2.0/24 or 2001:db8::/32\n"},
    {"[list a]\nnetworks = 192.0.2.1/24\n",
     "2: 192.0.2.1/24: bits after the prefix are set: expected 192.0.2.0/24\n"},
    {"[list a]\nnetworks = 2001:db8::1/32, 192.0.2.0/24\n",
     "2: 2001:db8::1/32: bits after the prefix are set: expected 2001:db8::/32\n"},
    {"[class a]\npath = /\nconnections = 5\n",
     "3: connections: only [class default] may set it: connections are counted before the class of "
     "a request is known\n"},
    {"[class a]\nheader = a b: c\n", "2: header = a b: c: expected NAME, or NAME: VALUE\n"},
    {"[class a]\npath = /\nhours = 22-6\n", "3: hours = 22-6: expected hours such as "
                                            "22:00-06:00\n"},
    {"[class a]\nhost = a:80\nlist = b\npath = /\n",
     "2: host = a:80: expected hosts without port, e.g. files.example.org or [2001:db8::1]\n"
     "3: list = b: there is no [list b]: expected names of [list NAME] sections\n"},
    {"[class a]\npath = a\nx\nrate = y\n",
     "2: path = a: expected paths as they are after decoding, from the root and without . and .., "
     "e.g. /iso/, at most 255 bytes\n"
     "3: x: expected KEY = VALUE or [SECTION]\n"
     "4: rate = y: expected a rate such as 20MiB/s, 200KiB/s or 100Mbit/s, from 1 to 1024GiB/s, or "
     "none\n"},
    {"[class default]\npath = /\n", "1: [class default]: matches every other request: expected no "
                                    "path, host, list, header or hours\n"},
    {"[files]\nlisting = on\n", "2: listing = on: expected yes or no\n"},
    {"[files]\nindex = a, b\n",
     "2: index = a, b: expected the name of one file, e.g. index.html; index "
     "in [site NAME] takes several\n"},
    {"[files]\nerror_page = 404 ../x\n",
     "2: error_page = 404 ../x: expected a status from 400 to 599 and a file below the root, e.g. "
     "404=/404.html or 404 /404.html\n"},
    {"[site a]\ngzip = on\n", "2: gzip: unknown in [site a]: nightjar has no such thing: it sends "
                              "compressed siblings of files, see docs/files.md\n"},
    {"[site a]\ndefault_server = on\n",
     "2: default_server: unknown in [site a]: here it is a section [site default]\n"},
    {"[site a]\nssl_certificate = x\n",
     "2: ssl_certificate: unknown in [site a]: here it is cert in [site NAME] or [tls]\n"},
    {"[log]\nlog_format = xml\n", "2: log_format = xml: expected combined, json or logfmt\n"},
};

Test(config_policy_file, faults)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        char told[1024] = "", line[512];
        const char *at = bad[i].told;
        while (*at) {
            size_t n = strcspn(at, "\n") + 1;
            snprintf(line, sizeof line, "p:%.*s", (int)n, at);
            strcat(told, line);
            at += n;
        }
        cr_expect(!parse_bytes(bad[i].text, strlen(bad[i].text)), "%s", bad[i].text);
        cr_expect_str_eq(faults.text ? faults.text : "", told);
    }
}

/* A section in which every line had an error gives no second error for being empty. */
Test(config_policy_file, one_fault_for_one_line)
{
    char text[5000], value[2060];

    memset(value, 'a', sizeof value);
    value[sizeof value - 1] = '\0';
    snprintf(text, sizeof text, "[class a]\npath = /%s\n[list b]\nnetworks = %s\n", value, value);
    cr_assert(!parse_bytes(text, strlen(text)));
    cr_expect_str_eq(faults.text, "p:2: path: expected a value of 1 to 2047 characters\n"
                                  "p:4: networks: expected a value of 1 to 2047 characters\n");
}

Test(config_policy_file, odd_lines)
{
    static const char crlf[] = "\xef\xbb\xbf; a comment\r\n# another\r\n[ server ]\r\nrate=5MiB/s "
                               "# of all\r\n[class a]\r\nheader = X-Odd: a\\#b\r\npath=/a";
    char longer[2100], text[5000];

    parse(crlf);
    make(0);
    cr_expect_eq(p.total.rate, 5u << 20);
    cr_expect_eq(p.rules[0].value.n_bytes, 3);
    cr_expect(memcmp(p.rules[0].value.p, "a#b", 3) == 0);
    cr_expect(memcmp(p.rules[0].header.p, "x-odd", 5) == 0 && p.rules[0].path_prefix.n_bytes == 2);
    cr_expect(!parse_bytes("[server]\nrate = 5\0MiB\n", 22));
    cr_expect_str_eq(faults.text, "p:2: NUL byte: expected text\n");
    memset(longer, 'x', sizeof longer);
    longer[2046] = '\0';
    snprintf(text, sizeof text, "[files]\ncache_control = %s\n", longer);
    parse(text);
    cr_expect_eq(strlen(config.cache_control), 2046, "none of it is cut");
    longer[2046] = 'x';
    longer[2048] = '\0';
    snprintf(text, sizeof text, "[files]\ncache_control = %s\n", longer);
    cr_expect(!parse_bytes(text, strlen(text)));
    longer[2048] = 'x';
    longer[512] = '\0';
    snprintf(text, sizeof text, "[files]\n%.64s = 1\n[%s]\n", longer, longer);
    cr_expect(!parse_bytes(text, strlen(text)));
    cr_expect_eq(faults.n, 2);
    parse("");
}

Test(config_policy_file, many_faults_are_counted)
{
    char text[4000] = "";

    for (unsigned i = 0; i < 100; i++)
        strcat(text, "\033[31m\n");
    cr_expect(!parse_bytes(text, strlen(text)));
    cr_expect_eq(faults.n, 100);
    unsigned n = 0;
    for (const char *t = faults.text; *t; t++) {
        n += *t == '\n';
        cr_expect_neq(*t, '\033', "control characters of a terminal");
    }
    cr_expect_eq(n, NJ_DIAGS_MAX);
}

Test(config_policy_file, classes_and_what_they_inherit)
{
    parse("[class default]\nclient_rate = 2MiB/s\nrequest_rate = 100KiB/s\nrate_after = 64KiB\n"
          "streams = 5\nrate = 9MiB/s\n"
          "[class a]\npath = /a/, /b/\nhost = One.example, two.example\nrate = 3MiB/s\nceiling = "
          "none\n"
          "client_rate = none\n"
          "[class b]\npath = /c/\nceiling = 1MiB/s\naction = later\n");
    make(0);
    cr_expect_eq(p.n_classes, 3);
    cr_expect_eq(p.n_rules, 5);
    const struct nj_class *d = class_named("default"), *a = class_named("a"), *b = class_named("b");
    cr_expect(d->total.rate == 9u << 20 && d->total.ceiling == 9u << 20);
    cr_expect(a->total.rate == 3u << 20 && a->total.ceiling == 0);
    cr_expect(a->client.rate == 0 && a->client.ceiling == 0 && a->request.rate == 100u << 10);
    cr_expect(a->rate_after == 65536 && a->caps.streams_max == 5 && a->action == NJ_ACTION_SERVE);
    cr_expect(b->total.rate == 0 && b->total.ceiling == 1u << 20 && b->client.rate == 2u << 20);
    cr_expect(b->action == NJ_ACTION_TOO_MANY && b->retry_after_s == 30);
    cr_expect(p.rules[0].class_index == 1 && p.rules[4].class_index == 2);
    cr_expect(memcmp(p.rules[0].host.p, "one.example", 11) == 0, "in lower case");
}

Test(config_policy_file, flags_win)
{
    parse("[server]\nrate = 1MiB/s\n[class default]\nclient_rate = 2MiB/s\nconnections = 3\n"
          "[limits]\nmax_body = 1KiB\nheader_timeout = 1s\n[files]\nindex = a\nlisting = yes\n");
    cr_expect(config.max_body == 1024 && config.header_timeout_s == 1 && config.listing);
    cr_expect_str_eq(config.index, "a");
    config.rate = 5u << 20;
    config.rate_per_client = NJ_NONE;
    config.connections_per_client = 9;
    make(0);
    cr_expect(p.total.rate == 5u << 20 && p.total.ceiling == 5u << 20);
    cr_expect(p.classes[0].client.ceiling == 0 && p.classes[0].caps.conns_max == 9);

    const char *text = "[limits]\nmax_body = 1KiB\n[files]\nindex = a\n";
    nj_server_config_init(&config);
    config.max_body = NJ_NONE;
    config.index = "b";
    fini();
    f = nj_policy_file_parse("p", text, strlen(text), &config, &faults);
    cr_assert(f, "%s", faults.text);
    cr_expect(config.max_body == NJ_NONE && strcmp(config.index, "b") == 0);
}

Test(config_policy_file, lists)
{
    parse("[server]\ndeny = b\nallow = a, b\ndeny_action = reset\n[class x]\nlist = c, a\n"
          "[list a]\nnetworks = 192.0.2.0/24, 2001:db8::/32\n[list b]\nnetworks = ::/0\n"
          "networks = 198.18.0.1\n[list c]\nnetworks = 0.0.0.0/0\n");
    make(0);
    cr_expect(p.deny == 2 && p.allow == 3 && p.allow_only && p.deny_action == NJ_ACTION_RESET);
    cr_expect_eq(p.rules[0].lists, 5);
    cr_expect_eq(f->n_networks, 5);
    cr_expect(f->network[0].bits == 96 + 24 && f->network[1].bits == 32);
    cr_expect(f->network[2].bits == 0 && f->network[3].bits == 128 && f->network[4].bits == 96);
    cr_expect(f->network[3].lists == 2 && f->network[4].lists == 4);
}

Test(config_policy_file, list_files, .fini = scratch_remove)
{
    char name[64], text[200];

    scratch_make();
    snprintf(name, sizeof name, "%s/list", scratch);
    FILE *list = fopen(name, "w");
    fputs("# theirs\n192.0.2.0/24\r\n\n ; more\n2001:db8::/32 # them\n198.18.0.1", list);
    fclose(list);
    snprintf(text, sizeof text, "[list a]\nfile = %s\n", name);
    parse(text);
    cr_expect_eq(f->n_networks, 3);
    list = fopen(name, "a");
    fputs("\nnonsense\n192.0.2.1/8\n", list);
    fclose(list);
    cr_expect(!parse_bytes(text, strlen(text)));
    char expected[300];
    snprintf(expected, sizeof expected, "%s:7: nonsense: expected an address", name);
    cr_expect(strstr(faults.text, expected), "%s", faults.text);
    cr_expect(strstr(faults.text, ":8: "), "%s", faults.text);
    cr_expect(strstr(faults.text, "p:2: file = "), "%s", faults.text);
    unlink(name);
    cr_expect(!parse_bytes(text, strlen(text)));
    cr_expect(strstr(faults.text, "No such file"), "%s", faults.text);
}

/* As of Spamhaus, and as some editors write it. */
Test(config_policy_file, list_files_of_others, .fini = scratch_remove)
{
    char name[64], text[200];

    scratch_make();
    snprintf(name, sizeof name, "%s/drop", scratch);
    FILE *list = fopen(name, "w");
    fputs(
        "\xef\xbb\xbf; Spamhaus DROP List\r\n192.0.2.0/24 ; SBL256894\r\n2001:db8::/32; SBL1 # 2\n"
        "198.18.0.1 # a ; b\n",
        list);
    fclose(list);
    snprintf(text, sizeof text, "[list a]\nfile = %s\n", name);
    parse(text);
    cr_expect_eq(f->n_networks, 3);
    list = fopen(name, "w");
    fputs("\xef\xbb\xbf"
          "192.0.2.0/24\n198.18.0.1 x ; y\n",
          list);
    fclose(list);
    cr_expect(!parse_bytes(text, strlen(text)));
    cr_expect(strstr(faults.text, ":2: 198.18.0.1 x: expected an address"), "%s", faults.text);
    cr_expect_not(strstr(faults.text, ":1: "), "%s", faults.text);
    unlink(name);
}

Test(config_policy_file, hours)
{
    parse("[server]\nrate = 1MiB/s\n[server 22:00-06:00]\nrate = 8MiB/s\n"
          "[class n]\npath = /n/\nhours = 23:30-24:00\n"
          "[class a]\npath = /a/\nrate = 1MiB/s\nburst = 64KiB\nclient_rate = 10KiB/s\n"
          "[class a 06:00-07:00]\nrate = 2MiB/s\nclient_rate = none\n"
          "[class a 06:30-08:00]\nceiling = 1536KiB/s\n");
    static const struct {
        unsigned hour, minute;
        uint64_t server, rate, ceiling, client;
        bool n;
    } rows[] = {
        {0, 0, 8192, 1024, 1024, 10, false},   {5, 59, 8192, 1024, 1024, 10, false},
        {6, 0, 1024, 2048, 2048, 0, false},    {6, 30, 1024, 1536, 1536, 0, false},
        {7, 0, 1024, 1024, 1536, 10, false},   {8, 0, 1024, 1024, 1024, 10, false},
        {21, 59, 1024, 1024, 1024, 10, false}, {22, 0, 8192, 1024, 1024, 10, false},
        {23, 29, 8192, 1024, 1024, 10, false}, {23, 30, 8192, 1024, 1024, 10, true},
        {23, 59, 8192, 1024, 1024, 10, true},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        make(rows[i].hour * 60 + rows[i].minute);
        const struct nj_class *a = class_named("a");
        cr_expect_eq(p.total.rate, rows[i].server << 10, "row %zu", i);
        cr_expect_eq(a->total.rate, rows[i].rate << 10, "row %zu", i);
        cr_expect_eq(a->total.ceiling, rows[i].ceiling << 10, "row %zu", i);
        cr_expect_eq(a->client.rate, rows[i].client << 10, "row %zu", i);
        cr_expect_eq(class_named("n") != NULL, rows[i].n, "row %zu", i);
    }
    /* A caller that asks each minute sees each change, for any steps of the clock in between. */
    uint32_t changes = 0;
    for (uint32_t m = 1; m <= 1440; m++)
        changes +=
            nj_policy_active_hours_mask(f, m % 1440) != nj_policy_active_hours_mask(f, m - 1);
    cr_expect_eq(changes, 7);
}

Test(config_policy_file, bounds)
{
    char text[20000] = "";

    for (unsigned i = 0; i < 31; i++)
        sprintf(text + strlen(text), "[class c%u]\npath = /%u/, /x%u/\n", i, i, i);
    parse(text);
    make(0);
    cr_expect_eq(p.n_classes, NJ_CLASSES_MAX);
    cr_expect_eq(p.n_rules, 62);
    strcat(text, "[class c31]\npath = /\n");
    cr_expect(!parse_bytes(text, strlen(text)));
    cr_expect_str_eq(faults.text, "p:63: [class c31]: expected at most 31 classes besides the "
                                  "default one\n");
    strcpy(text, "[class a]\npath = /a,/b,/c,/d,/e,/f,/g,/h,/i\nhost = a,b,c,d,e,f,g,h\n");
    cr_expect(!parse_bytes(text, strlen(text)));
    cr_expect_str_eq(faults.text, "p:1: [class a]: expected at most 64 combinations of path and "
                                  "host in all classes\n");
    text[0] = '\0';
    for (unsigned i = 0; i < 17; i++)
        sprintf(text + strlen(text), "[list l%u]\nnetworks = ::1\n", i);
    cr_expect(!parse_bytes(text, strlen(text)));
    cr_expect_str_eq(faults.text, "p:33: [list l16]: expected at most 16 lists\n");
}

/* A rate is shown in the unit that a person would use. The shown text means the same number. */
Test(config_policy_file, rates_are_shown_as_people_write_them)
{
    static const char *const shown[][2] = {
        {"800Mbit/s", "800Mbit/s"}, {"100000000B/s", "800Mbit/s"}, {"20MiB/s", "20MiB/s"},
        {"1Gbit/s", "1Gbit/s"},     {"16Gbit/s", "16Gbit/s"},      {"500kbit/s", "500kbit/s"},
        {"1024GiB/s", "1024GiB/s"}, {"123457B/s", "123457B/s"},    {"1.5MiB/s", "1536KiB/s"},
        {"0.1Gbit/s", "100Mbit/s"}, {"1023B/s", "1023B/s"},
    };
    char text[64];
    char expected[160];

    for (size_t i = 0; i < NJ_ARRAY_LEN(shown); i++) {
        struct nj_class_keys keys = {0}, again = {0};
        cr_assert(nj_class_key_parse(&keys, 0, shown[i][0], expected, sizeof expected));
        const char *is = nj_class_key_format(&keys.value, 0, text, sizeof text);
        cr_expect_str_eq(is, shown[i][1]);
        cr_assert(nj_class_key_parse(&again, 0, is, expected, sizeof expected), "%s", is);
        cr_expect_eq(again.value.total.rate, keys.value.total.rate, "%s", is);
    }
}

/* ---- trusted proxies ---- */

static bool is_trusted(const char *net)
{
    for (uint32_t i = 0; i < f->n_networks; i++) {
        char text[NJ_ADDRESS_TEXT_BYTES];
        const struct nj_network *n = &f->network[i];
        if (n->lists & f->trusted && strcmp(nj_address_text(&n->addr, text), net) == 0)
            return true;
    }
    return false;
}

/* Trusted proxies are a list like those with names. The command line's are added to those of the
 * file. */
Test(config_policy_file, trusted_proxies)
{
    static const char text[] = "[client]\nby = header X-Forwarded-For\n"
                               "trusted_proxy = 10.0.0.0/8, 2001:db8:1::/48\n"
                               "trusted_proxy = 192.0.2.1\n"
                               "[list a]\nnetworks = 203.0.113.0/24\n";

    fini();
    nj_server_config_init(&config);
    config.trusted_proxy[0] = "198.51.100.0/24";
    f = nj_policy_file_parse("p", text, strlen(text), &config, &faults);
    cr_assert(f, "%s", faults.text);
    make(0);
    cr_expect(p.trusted == 1u << 1 && f->list_used == 1u << 1);
    cr_expect_eq(f->n_networks, 5);
    cr_expect(is_trusted("10.0.0.0") && is_trusted("2001:db8:1::") && is_trusted("192.0.2.1") &&
              is_trusted("198.51.100.0"));
    cr_expect_not(is_trusted("203.0.113.0"));
    parse("[client]\nby = header X-Forwarded-For\n");
    make(0);
    cr_expect_eq(p.trusted, 0);
}

/* Also without a file. An error contains the name of the option. */
Test(config_policy_file, trusted_proxies_of_the_command_line)
{
    fini();
    nj_server_config_init(&config);
    config.trusted_proxy[0] = "10.0.0.0/8";
    f = nj_policy_file_read(NULL, &config, &faults);
    cr_assert(f);
    cr_expect(is_trusted("10.0.0.0"));
    nj_policy_file_free(f);
    config.trusted_proxy[1] = "10.0.0.1/8";
    f = nj_policy_file_read(NULL, &config, &faults);
    cr_expect(!f);
    cr_expect_str_eq(
        faults.text,
        "--trusted-proxy: 10.0.0.1/8: bits after the prefix are set: expected 10.0.0.0/8\n");
}

/* There are 16 places for lists. */
Test(config_policy_file, trusted_proxies_take_the_place_of_a_list)
{
    char text[1024];
    size_t n = 0;

    for (unsigned i = 0; i < NJ_LISTS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "[list l%u]\nnetworks = 192.0.2.1\n", i);
    cr_assert(parse_bytes(text, n), "%s", faults.text);
    n += (size_t)snprintf(text + n, sizeof text - n, "[client]\ntrusted_proxy = 10.0.0.0/8\n");
    cr_expect_not(parse_bytes(text, n));
    cr_expect_str_eq(faults.text,
                     "p:34: trusted proxies count as a list: expected at most 15 other lists\n");
}

/* Only handlers use it by name: no rule assigns requests to it. */
Test(config_policy_file, class_that_matches_nothing)
{
    parse("[class own]\nrate = 5MiB/s\n[class a]\npath = /a/\n");
    make(0);
    cr_expect_eq(p.n_classes, 3);
    cr_expect_str_eq(p.classes[1].name, "own");
    cr_expect_eq(p.n_rules, 1);
    cr_expect_eq(p.rules[0].class_index, 2);
}
