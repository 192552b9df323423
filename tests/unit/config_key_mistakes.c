/* SPDX-License-Identifier: BSD-3-Clause */
/* Mistakes in every key of the table: each is told, with its line, and no other line is. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "config/config_by_name.h"
#include "config/policy_file.h"
#include "config/policy_warn.h"
#include "config/settings_validate.h"
#include "config/site_sections.h"
#include "support/scratch.h"

TestSuite(config_key_mistakes, .fini = scratch_remove);

static struct nj_diags faults;

/* The section with a name, as in a file. */
static const char *section_of(const struct nj_option *o)
{
    return strcmp(o->section, "class NAME") == 0       ? "class a"
           : strcmp(o->section, "site NAME") == 0      ? "site x"
           : strcmp(o->section, "path NAME PATH") == 0 ? "path x /x/"
           : strcmp(o->section, "list NAME") == 0      ? "list a"
           : strcmp(o->section, "listen NAME") == 0    ? "listen a"
                                                       : o->section;
}

static const char *const of_keys[][2] = {
    {"arguments", "-l 1"},
    {"preset", "tap"},
    {"ceiling", "1MiB/s"},
    {"burst", "1MiB"},
    {"rate", "1KiB/s"},
    {"client_rate", "1KiB/s"},
    {"allow", "a"},
    {"client_ceiling", "1MiB/s"},
    {"client_burst", "1MiB"},
    {"deny", "a"},
    {"request_rate", "1KiB/s"},
    {"request_ceiling", "1MiB/s"},
    {"by", "address"},
    {"request_burst", "1MiB"},
    {"rate_after", "1KiB"},
    {"prefix4", "24"},
    {"prefix6", "56"},
    {"deny_action", "drop"},
    {"path", "/x"},
    {"networks", "192.0.2.1"},
    {"connections", "5"},
    {"host", "x"},
    {"tls_subject", "*"},
    {"hours", "22:00-06:00"},
    {"list", "a"},
    {"action", "serve"},
    {"retry_after", "30s"},
    {"streams", "5"},
    {"requests", "5"},
    {"requests_burst", "5"},
    {"header", "x: y"},
    {"file", "/dev/null"},
    {"trusted_proxy", "192.0.2.1"},
    {"port", "8080"},
    {"address", "192.0.2.1"},
    {"tls", "yes"},
    {"proxy_protocol", "yes"},
    {"index", "a"},
    {"error_page", "404=/a"},
    {"default_type", "text/plain"},
    {"mime_types", "/etc/passwd"},
    {"dotfiles", ".a"},
    {"cache_control", "no-store"},
};

static const char *const of_sites[][2] = {
    {"name", "a.example"},
    {"redirect", "301 /x"},
    {"header", "add X-A: b"},
    {"handler", "none"},
    {"methods", "GET"},
    {"cors", "*"},
    {"hsts", "1d"},
    {"try", "$path, /a"},
    {"missing", "redirect https://a.example$path"},
    {"root", "/usr"},
    {"error_page", "404 /a"},
    {"mime", ".a text/plain"},
    {"listing", "on"},
    {"log", "off"},
    {"content_disposition", "attachment"},
    {"acme", "/usr"},
    {"alias", "/usr"},
    {"rewrite", "/y/"},
    {"client_optional", "yes"},
    {"client_cert", "required"},
};

/* A value that the key takes. */
static const char *good_value(const struct nj_option *o)
{
    static char text[64];
    char key[NJ_OPTION_KEY_BYTES];

    nj_option_key(o, key);
    bool of_site =
        strcmp(o->section, "site NAME") == 0 || strcmp(o->section, "path NAME PATH") == 0;
    for (size_t i = 0; of_site && i < NJ_ARRAY_LEN(of_sites); i++)
        if (strcmp(of_sites[i][0], key) == 0)
            return of_sites[i][1];
    for (size_t i = 0; i < NJ_ARRAY_LEN(of_keys); i++)
        if (strcmp(of_keys[i][0], key) == 0)
            return of_keys[i][1];
    text[0] = 'x';
    text[1] = '\0';
    if (o->kind == NJ_OPTION_NUMBER)
        snprintf(text, sizeof text, "%.0f", o->max);
    else if (o->kind == NJ_OPTION_SIZE)
        snprintf(text, sizeof text, "%.0fB", o->min);
    else if (o->kind == NJ_OPTION_WORD)
        snprintf(text, sizeof text, "%.*s", (int)strcspn(o->expected, "|"), o->expected);
    return o->kind == NJ_OPTION_SWITCH ? "yes"
           : o->kind == NJ_OPTION_RATE ? "1MiB/s"
           : o->kind == NJ_OPTION_TIME ? "1s"
                                       : text;
}

static bool parse(const char *text)
{
    struct nj_server_config c;

    nj_diags_free(&faults);
    nj_server_config_init(&c);
    struct nj_policy_file *f = nj_policy_file_parse("p", text, strlen(text), &c, &faults);
    bool ok = f;
    nj_policy_file_free(f);
    return ok;
}

/* What a key needs beside it. */
static const char *beside(const char *section)
{
    if (strncmp(section, "path ", 5) == 0)
        return "[site x]\n";
    return strcmp(section, "list a") == 0 ? "" : "[list a]\nnetworks = 192.0.2.0/24\n";
}

/* Is `key = value` in the section refused with its line, and with `with`? */
static void expect_refused(const char *section, const char *key, const char *value,
                           const char *with)
{
    char text[512];

    snprintf(text, sizeof text, "[%s]\n%s = %s\n%s", section, key, value,
             section[0] == 'p' ? beside(section) : "");
    cr_expect(!parse(text), "%s", text);
    cr_expect(faults.text && strstr(faults.text, "p:2: ") && strstr(faults.text, with), "%s%s",
              text, faults.text ? faults.text : "");
}

static bool is_tested(const struct nj_option *o)
{
    /* connections are a key of [class default] only; file needs one */
    return o->section && strcmp(o->section, "class default") != 0 &&
           strcmp(o->name, "connections") != 0 && strcmp(o->name, "file") != 0;
}

Test(config_key_mistakes, a_good_value_is_taken)
{
    char text[512], key[NJ_OPTION_KEY_BYTES];
    uint32_t n = 0;

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (!is_tested(o))
            continue;
        n++;
        snprintf(text, sizeof text, "[%s]\n%s = %s\n%s", section_of(o), nj_option_key(o, key),
                 good_value(o), beside(section_of(o)));
        cr_expect(parse(text), "%s%s", text, faults.text);
    }
    cr_expect_gt(n, 90);
}

static bool is_key(const char *section, const char *name)
{
    char key[NJ_OPTION_KEY_BYTES];

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++)
        if (o->section && strcmp(section_of(o), section) == 0 &&
            strcmp(nj_option_key(o, key), name) == 0)
            return true;
    return false;
}

/* A letter is missing, doubled, or another one. */
Test(config_key_mistakes, misspelt_keys)
{
    char key[NJ_OPTION_KEY_BYTES], bad[NJ_OPTION_KEY_BYTES + 1];
    uint32_t n_suggested = 0, n = 0;

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (!is_tested(o))
            continue;
        size_t len = strlen(nj_option_key(o, key)), at = len / 2;
        for (int how = 0; how < 3; how++) {
            snprintf(bad, sizeof bad, "%s", key);
            if (how == 0)
                memmove(bad + at, bad + at + 1, len - at);
            else if (how == 1)
                memmove(bad + at + 1, bad + at, len - at + 1);
            else
                bad[at] = 'q';
            if ((len < 3 && how == 0) || is_key(section_of(o), bad))
                continue; /* "by" would be "b"; requests_burst may become request_burst */
            expect_refused(section_of(o), bad, good_value(o), "unknown in [");
            n++;
            n_suggested += faults.text && strstr(faults.text, "did you mean ") != NULL;
        }
    }
    cr_expect_geq(n_suggested, n - 8, "%u of %u", n_suggested, n);
}

Test(config_key_mistakes, wrong_types_and_ranges)
{
    static const struct {
        enum nj_option_kind kind;
        const char *values[8];
    } bad[] = {
        {NJ_OPTION_SWITCH, {"on", "1", "true", "YES", "yes no"}},
        {NJ_OPTION_NUMBER, {"x", "-1", "1.5", "0x10", "99999999999", "1 2", "10MiB"}},
        {NJ_OPTION_SIZE, {"x", "-1", "10", "10 MiB", "10mib", "10MB", "9e99GiB"}},
        {NJ_OPTION_RATE, {"x", "-1B/s", "10", "0", "10MiB", "20mbit/s", "2000GiB/s"}},
        {NJ_OPTION_TIME, {"x", "-1s", "10", "10sec", "1w", "25h", "1:00"}},
        {NJ_OPTION_WORD, {"x", "", "none|", "Beneath", "jsn"}},
    };
    char key[NJ_OPTION_KEY_BYTES];

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++)
        for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++)
            for (size_t k = 0; k < 8 && is_tested(o) && bad[i].kind == o->kind; k++)
                if (bad[i].values[k])
                    expect_refused(section_of(o), nj_option_key(o, key), bad[i].values[k],
                                   ": expected ");
}

Test(config_key_mistakes, duplicates)
{
    char text[512], key[NJ_OPTION_KEY_BYTES];

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (!is_tested(o))
            continue;
        int n = snprintf(text, sizeof text, "[%s]\n%s = %s\n", section_of(o), nj_option_key(o, key),
                         good_value(o));
        for (char *p = key; (p = strchr(p, '_'));)
            *p = '-'; /* the same key */
        snprintf(text + n, sizeof text - (size_t)n, "%s = %s\n%s", key, good_value(o),
                 beside(section_of(o)));
        bool ok = parse(text);
        /* a second page for one status, or a second equal name, is another mistake */
        if (nj_option_may_repeat(o))
            cr_expect(ok || strcmp(key, "error-page") == 0 || strcmp(key, "mime") == 0 ||
                          strcmp(key, "name") == 0,
                      "%s%s", text, faults.text);
        else
            cr_expect(!ok && faults.n == 1 && strstr(faults.text, "p:3: ") &&
                          strstr(faults.text, "first set on line 2"),
                      "%s%s", text, faults.text ? faults.text : "");
    }
}

/* Is it a key of such sections? Those of paths have most keys of sites. */
static bool has_keys_of(const char *section, const struct nj_option *o)
{
    return strcmp(o->section, section) == 0 ||
           (strcmp(section, "path NAME PATH") == 0 && strcmp(o->section, "site NAME") == 0 &&
            !nj__site_key_is_of_site(o->name));
}

/* Each key in the section of each other one, if that has none of its name. */
Test(config_key_mistakes, wrong_sections)
{
    char key[NJ_OPTION_KEY_BYTES], other[NJ_OPTION_KEY_BYTES], where[80];

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        const char *before = "";
        for (const struct nj_option *x = nj_options; is_tested(o) && x < nj_options + nj_n_options;
             x++) {
            if (!is_tested(x) || strcmp(x->section, before) == 0)
                continue;
            before = x->section;
            bool has = false;
            for (const struct nj_option *y = nj_options; y < nj_options + nj_n_options; y++)
                has |= y->section && has_keys_of(x->section, y) &&
                       strcmp(nj_option_key(y, other), nj_option_key(o, key)) == 0;
            snprintf(where, sizeof where, "[%s]", o->section);
            if (!has)
                expect_refused(section_of(x), nj_option_key(o, key), good_value(o),
                               strcmp(x->section, "class NAME") == 0 ? "unknown in [" : where);
        }
    }
}

/* The option's own name, where the key has another one. */
Test(config_key_mistakes, names_of_options)
{
    char key[NJ_OPTION_KEY_BYTES], name[NJ_OPTION_KEY_BYTES], meant[96];

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        if (!is_tested(o) || !o->key || o->kind == NJ_OPTION_KEY || o->in_policy)
            continue;
        snprintf(name, sizeof name, "%s", o->name);
        snprintf(meant, sizeof meant, "did you mean %s?", nj_option_key(o, key));
        expect_refused(section_of(o), name, good_value(o), meant);
    }
}

/* Writes a configuration file and names it in *c. */
static void give_file(struct nj_server_config *c, char *path, size_t n, const char *text)
{
    if (!scratch[0])
        scratch_make();
    snprintf(path, n, "%s/nightjar.conf", scratch);
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs(text, f) > 0 && fclose(f) == 0);
    nj_server_config_init(c);
    c->policy_file = path;
}

/* Values that only all settings together show to be wrong: the line is that of the file. */
Test(config_key_mistakes, values_that_do_not_go_together)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"[network]\nmtu = 1500\naddr = 198.18.0.2\n", ":3: addr 198.18.0.2: "},
        {"[network]\naddr = 198.18.0.2/24\naddr = 198.18.0.0/24\n", ":3: addr 198.18.0.0/24: "},
        {"[network]\nvlan = 5000\n", ":2: vlan 5000: "},
        {"[network]\nrss_key = 12\n", ":2: rss_key"},
        {"[tls]\nport = 80\ncert = a\nkey = b\n", ":2: port and [network] listen must differ"},
        {"[tls]\ncert = a\n", ":2: each cert needs its key: "},
        {"[tls]\nclient_optional = yes\n", ":2: client_optional needs client_ca"},
        {"[tls]\nkeylog = k\ncert = a\nkey = b\n", ":2: keylog needs insecure_keylog: "},
        {"[process]\nupgrade-socket = /x\n", ":2: upgrade_socket /x: "},
        {"[files]\nroot = /nowhere\n", ":2: root /nowhere: No such file"},
        {"[files]\nerror_page = 404=/no\nroot = /etc\n", ":2: error_page 404=/no: "},
    };
    char path[64], why[512];

    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        struct nj_server_config c;
        struct nj_settings s;
        give_file(&c, path, sizeof path, cases[i].text);
        cr_expect_eq(nj_settings_from_partial_config(&s, &c, why, sizeof why), -1, "%s",
                     cases[i].text);
        cr_expect(strncmp(why, path, strlen(path)) == 0 && strstr(why, cases[i].told), "%s: %s",
                  cases[i].text, why);
    }
}

/* The command line has the value: the file is not to blame. A default on it wins, too. */
Test(config_key_mistakes, the_command_line_is_named_by_its_option)
{
    char path[64], why[512];
    static const char text[] = "[network]\nvlan = 5\nlisten = 8080\n[files]\nlisting = no\n"
                               "[storage]\ncache = 0\n";
    struct nj_server_config c;
    struct nj_settings s;

    give_file(&c, path, sizeof path, text);
    c.vlan[0] = "9999";
    cr_expect_eq(nj_settings_from_partial_config(&s, &c, why, sizeof why), -1);
    cr_expect(strncmp(why, "--vlan 9999: ", 13) == 0, "%s", why);
    c.vlan[0] = NULL;
    cr_assert_eq(nj_settings_from_partial_config(&s, &c, why, sizeof why), 0, "%s", why);
    cr_expect(s.config->listen_port == 8080 && s.config->cache_bytes == 0);
    cr_expect_str_eq(s.config->vlan[0], "5");
    nj_settings_free(&s);
    cr_assert_eq(nj_server_config_set(&c, "listen", "80", why, sizeof why), 0);
    cr_assert_eq(nj_server_config_set(&c, "cache", "1GiB", why, sizeof why), 0);
    cr_assert_eq(nj_settings_from_partial_config(&s, &c, why, sizeof why), 0, "%s", why);
    cr_expect(s.config->listen_port == 80 && s.config->cache_bytes == 1u << 30);
    nj_settings_free(&s);
}

/* The warnings of a file with these lines, below each other. */
static const char *warnings_of(const char *text, struct nj_diags *warnings)
{
    struct nj_server_config given, effective;

    nj_diags_free(&faults);
    nj_server_config_init(&given);
    effective = given;
    struct nj_policy_file *f = nj_policy_file_parse("p", text, strlen(text), &effective, &faults);
    cr_assert(f, "%s%s", text, faults.text);
    nj_diags_free(warnings);
    nj_policy_warn(f, "p", &given, warnings);
    nj_policy_file_free(f);
    return warnings->text ? warnings->text : "";
}

/* Each key that needs another one, or that another one hides. */
Test(config_key_mistakes, pairs_of_the_table)
{
    char key[NJ_OPTION_KEY_BYTES], with[NJ_OPTION_KEY_BYTES], told[160], text[512];
    struct nj_diags warnings = {0};
    uint32_t n = 0;

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        const struct nj_option *x = nj_options;
        const char *other = o->needs ? o->needs : o->hidden_by;
        if (!other)
            continue;
        while (x < nj_options + nj_n_options && strcmp(x->name, other) != 0)
            x++;
        cr_assert_lt(x, nj_options + nj_n_options, "%s", other);
        nj_option_key(x, with);
        snprintf(told, sizeof told, "%s: without effect: [%s] %s is ", nj_option_key(o, key),
                 x->section, with);
        int at = snprintf(text, sizeof text, "[%s]\n%s = %s\n", o->section, key, good_value(o));
        cr_expect_eq(strstr(warnings_of(text, &warnings), told) != NULL, o->needs != NULL, "%s%s",
                     text, warnings.text);
        snprintf(text + at, sizeof text - (size_t)at, "%s = %s\n", with, good_value(x));
        cr_expect_eq(strstr(warnings_of(text, &warnings), told) != NULL, o->hidden_by != NULL,
                     "%s%s", text, warnings.text);
        n++;
    }
    cr_expect_geq(n, 5);
    nj_diags_free(&warnings);
}

/* Below a redirect, each key of a path is told, unless redirects have it, too. */
Test(config_key_mistakes, keys_below_a_redirect)
{
    static const char *const of_redirects[] = {"redirect", "header", "allow", "deny",
                                               "cors",     "hsts",   "log",   "client_cert"};
    char key[NJ_OPTION_KEY_BYTES], text[512];
    struct nj_diags warnings = {0};

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++) {
        bool is_of =
            !o->section || strcmp(o->section, "site NAME") != 0 || nj__site_key_is_of_site(o->name);
        nj_option_key(o, key);
        for (size_t i = 0; i < NJ_ARRAY_LEN(of_redirects); i++)
            is_of |= strcmp(of_redirects[i], key) == 0;
        if (is_of)
            continue;
        snprintf(text, sizeof text, "[site x]\n[path x /a/]\nredirect = 301 /b\n%s = %s\n", key,
                 good_value(o));
        snprintf(key + strlen(key), 20, ": without effect");
        cr_expect(strstr(warnings_of(text, &warnings), key) && strstr(warnings.text, "p:4: "),
                  "%s%s", text, warnings.text ? warnings.text : "");
    }
    nj_diags_free(&warnings);
}

Test(config_key_mistakes, words_of_other_servers)
{
    expect_refused("site x", "try_files", "$uri /index.html", "here it is try = $path, /FILE in [");
    expect_refused("tls", "ssl_certificate", "a", "here it is cert in [site NAME] or [tls]");
    expect_refused("site x", "return", "301 /x", "here it is redirect = 301 URL");
    cr_expect(!parse("[location /x]\n"));
    cr_expect_str_eq(faults.text, "p:1: [location /x]: expected a section [path SITE PATH]\n");
}

Test(config_key_mistakes, names_of_lists)
{
    expect_refused("server", "allow", "192.0.2.0/24",
                   "make a section [list NAME] with networks = 192.0.2.0/24");
    expect_refused("site x", "deny", "qqqq", "there is no [list qqqq]: expected names of [list");
    cr_expect(!parse("[list office]\nnetworks = 192.0.2.1\n[class a]\nlist = offce\n"));
    cr_expect_str_eq(faults.text,
                     "p:4: list = offce: there is no [list offce]: did you mean office?\n");
}

/* A file has three errors of settings that depend on each other: the reader reports all three. */
Test(config_key_mistakes, several_errors)
{
    static const char text[] = "[network]\nvlan = 5000\n[files]\nroot = /nowhere\n[tls]\n"
                               "client_optional = yes\n";
    char path[64], why[512];
    struct nj_server_config c;
    struct nj_settings s;

    give_file(&c, path, sizeof path, text);
    cr_expect_eq(nj_settings_from_partial_config(&s, &c, why, sizeof why), -1);
    cr_expect_str_eq(why, "3 errors, see above; nothing was started");
    cr_expect_eq(s.faults.n, 3);
    cr_expect(strstr(s.faults.text, ":2: vlan 5000: ") &&
                  strstr(s.faults.text, ":4: root /nowhere: No such file") &&
                  strstr(s.faults.text, ":6: client_optional needs client_ca\n"),
              "%s", s.faults.text);
    nj_diags_free(&s.faults);
}
