/* SPDX-License-Identifier: BSD-3-Clause */
/* [site NAME] and [path NAME PATH]: the rules that they make, and the messages for errors. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "config/site_sections.h"

static struct nj_diags faults;
static struct nj_server_config config;
static struct nj_policy_file *f;
static struct nj_sites *sites;

static void fini(void)
{
    nj_sites_free(sites);
    nj_policy_file_free(f);
    nj_diags_free(&faults);
    sites = NULL;
    f = NULL;
}

TestSuite(config_site_sections, .fini = fini);

static const struct nj_route routes[] = {
    {.path = "/lookup"}, {.path = "slow"}, {.path = "lookup"}, {.path = "lookup", .method = "PUT"}};

static bool parse(const char *text)
{
    fini();
    nj_server_config_init(&config);
    config.routes = routes;
    config.n_routes = NJ_ARRAY_LEN(routes);
    f = nj_policy_file_parse("p", text, strlen(text), &config, &faults);
    return f != NULL;
}

static void load(const char *text)
{
    const char *why;

    cr_assert(parse(text), "%s", faults.text);
    const struct nj_site_sections *s = f->sites;
    sites = nj_sites_new(s->sites, s->n_sites, s->paths, s->n_paths, 1, &why);
    cr_assert(sites, "%s", why);
}

static const struct nj_site_rules *rules_of(const char *host, const char *path)
{
    return nj_sites_find(sites, (struct nj_str){host, (uint32_t)strlen(host)},
                         (struct nj_str){path, (uint32_t)strlen(path)});
}

static void expect_str(struct nj_str got, const char *expected)
{
    cr_expect(nj_str_eq(got, (struct nj_str){expected, (uint32_t)strlen(expected)}), "%.*s, not %s",
              (int)got.n_bytes, got.p, expected);
}

Test(config_site_sections, values)
{
    load("[site WWW.example.org]\nname = Example.org, *.example.net\nredirect = https\n"
         "hsts = 365d, subdomains, preload\ncors = https://app.example.org\n"
         "header = set X-Frame-Options: DENY\nheader = remove Server\nmethods = GET, POST\n"
         "allow = in, out\ndeny = out\ncache_control = max-age=60\n"
         "[path www.example.org /open/]\nredirect = none\nhsts = none\ncors = none\nmethods = any\n"
         "allow = all\ndeny = none\ncache_control = none\n"
         "[path www.example.org /old/]\nredirect = 308 https://new.example.org/x/$rest\n"
         "[site default]\nredirect = https:8443\n"
         "[list in]\nnetworks = 192.0.2.0/24\n[list out]\nnetworks = 198.18.0.0/15\n");
    const struct nj_site_rules *r = rules_of("example.ORG", "/");
    cr_assert(r);
    cr_expect_eq(r, rules_of("a.b.example.net", "/x"));
    cr_expect(r->redirect_status == 301 && r->redirect_cleartext_only);
    expect_str(r->redirect_to, "https://$host$path");
    expect_str(r->hsts, "max-age=31536000; includeSubDomains; preload");
    expect_str(r->cors_origin, "https://app.example.org");
    expect_str(r->methods, "GET, POST, HEAD");
    expect_str(r->cache_control, "max-age=60");
    cr_expect(r->allow == 3 && r->deny == 2 && f->list_used == 3);
    cr_assert_eq(r->n_fields, 2);
    expect_str(r->fields[0].name, "x-frame-options");
    expect_str(r->fields[0].value, "DENY");
    cr_expect(r->fields[0].change == NJ_FIELD_SET && r->fields[1].change == NJ_FIELD_REMOVE);

    r = rules_of("www.example.org", "/open/x");
    cr_expect(r->redirect_status == 0 && r->hsts.n_bytes == 0 && r->cors_origin.n_bytes == 0);
    cr_expect(r->methods.n_bytes == 0 && r->allow == 0 && r->deny == 0);
    cr_expect(r->cache_control.n_bytes == 0 && r->keys & NJ_SITE_CACHE_CONTROL);
    cr_expect_eq(r->n_fields, 2, "fields are overridden by name");

    r = rules_of("www.example.org", "/old/y");
    cr_expect(r->redirect_status == 308 && !r->redirect_cleartext_only);
    expect_str(r->redirect_to, "https://new.example.org/x/$rest");
    expect_str(r->prefix, "/old/");
    expect_str(rules_of("other.example", "/")->redirect_to, "https://$host:8443$path");
}

Test(config_site_sections, handlers)
{
    load("[site a]\nhandler = slow\n[path a *.x]\nhandler = none\n[path a /l/]\nhandler = lookup\n"
         "[path a /l/one]\nmethods = GET\n[path a /n]\nhandler = lookup\n");
    static const struct {
        const char *path, *prefix;
        uint32_t handler;
    } rows[] = {{"/", "/", 2},        {"/b.x", "/", 0},     {"/l", "/l/", 3}, {"/l/a", "/l/", 3},
                {"/l/one", "/l/", 3}, {"/l/b.x", "/l/", 3}, {"/n", "/n", 3}};
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        const struct nj_site_rules *r = rules_of("a", rows[i].path);
        cr_expect_eq(r->handler, rows[i].handler, "%s: %u", rows[i].path, r->handler);
        expect_str(r->handler_prefix, rows[i].prefix);
    }
    config.n_routes = 0;
    struct nj_diags told = {0};
    const char *text = "[site a]\nhandler = lookup\n";
    cr_expect_null(nj_policy_file_parse("p", text, strlen(text), &config, &told));
    cr_expect_str_eq(told.text, "p:2: handler = lookup: expected none, or the name of a handler of "
                                "the program, which has none\n");
    nj_diags_free(&told);
}

static void expect_name(const char *path, const char *files, const char *put, uint32_t n_strip)
{
    const struct nj_site_rules *r = rules_of("a", path);

    expect_str(r->files, files);
    expect_str(r->put, put);
    cr_expect_eq(r->n_strip, n_strip, "%s: %u", path, r->n_strip);
}

Test(config_site_sections, files)
{
    load("[site a]\nroot = /usr/\nindex = index.html, index.htm\tdefault.htm\nlisting = on\n"
         "error_page = 404 /404.html\nerror_page = 503=/errors/503.html\nmime = .WASM a/b\n"
         "default_type = text/plain\nacme = /nowhere/acme\nlog = off\n"
         "[path a /pub/]\nalias = /usr/lib/\nindex = none\nlisting = no\nmime = .wasm none\n"
         "[path a /pub/new/]\nrewrite = /next/\n"
         "[path a /robots.txt]\nrewrite = /robots-a.txt\ncontent_disposition = inline\n"
         "[path a /server/]\nroot = none\ndefault_type = none\nerror_page = 404 none\n"
         "[path a *.bin]\ncontent_disposition = attachment\n");
    const struct nj_site_rules *r = rules_of("a", "/x.bin");
    expect_name("/x.bin", "//usr//", "", 0);
    expect_str(r->index, "index.html index.htm default.htm");
    cr_expect(r->listing && r->is_unlogged && strcmp(r->default_type, "text/plain") == 0);
    cr_assert_eq(r->n_named, 3);
    expect_str(r->named[0].value, "404.html");
    expect_str(r->named[1].name, "503");
    expect_str(r->named[1].value, "errors/503.html");
    expect_str(r->named[2].name, ".wasm");
    expect_str(r->fields[0].value, "attachment");
    expect_name("/pub/x", "//usr/lib//", "", 4);
    expect_name("/pub", "//usr/lib//", "", 4);
    expect_name("/pub/new/x", "//usr//", "next/", 8);
    expect_name("/robots.txt", "//usr//", "robots-a.txt", 10);
    expect_name("/server/x", "", "", 0);
    r = rules_of("a", "/server/x");
    cr_expect(!r->default_type && r->n_named == 3 && r->keys & NJ_SITE_ROOT);
    expect_name("/.well-known/acme-challenge/x", "//nowhere/acme//", "", 27);
    r = rules_of("a", "/.well-known/acme-challenge/x");
    cr_expect(!r->listing && nj_site_is_of_acme(r) && r->keys & NJ_SITE_HANDLER);
    cr_assert_eq(f->sites->n_folders, 3);
    cr_expect(nj__site_folder_is_absolute(&f->sites->folders[0]));
}

/* Line 1 of a file. The lines after it have the faults. */
#define HEAD "[site a]\n"

/* `told` without "p:". */
static const struct {
    const char *text, *told;
} bad[] = {
    {"[site]\n", "1: [site]: expected one name after it; further names are keys: name = NAME\n"},
    {"[site a b]\n",
     "1: [site a b]: expected one name after it; further names are keys: name = NAME\n"},
    {"[site a_/b]\n", "1: [site a_/b]: expected the name of a host, e.g. www.example.org or "
                      "*.example.org, or default\n"},
    {"[site www.*.org]\n", "1: [site www.*.org]: expected the name of a host, e.g. www.example.org "
                           "or *.example.org, or default\n"},
    {HEAD "[site  a]\n", "2: [site  a]: duplicate; first set on line 1\n"},
    {HEAD "[site A]\n", "2: a: duplicate; the section on line 1 has it, too\n"},
    {"[site default]\n[site Default]\n",
     "2: [site Default]: duplicate; [site default] is on line 1\n"},
    {HEAD "header = remove Vary\n", "2: header = remove vary: only the server can set or remove "
                                    "this field; it can be added\n"},
    {HEAD "deny = x\ndeny = none\n[list x]\nnetworks = ::/0\n",
     "3: deny = none: none must be the only value\n"},
    {HEAD "allow = all\nallow = x\n[list x]\nnetworks = ::/0\n",
     "3: allow = x: all must be the only value\n"},
    {HEAD "name = b, b\n", "1: b: duplicate; the section on line 1 has it, too\n"},
    {"[site default]\nname = b\n",
     "2: name: [site default] has all names that no other site has\n"},
    {HEAD "name = b:80\n", "2: name = b:80: expected names of hosts without port, e.g. "
                           "www.example.org, or *.example.org for any name below it\n"},
    {"[path a /x/]\n", "1: [path a /x/]: there is no [site a]: expected the first name of a "
                       "site\n"},
    {"[site www]\n[path ww /x/]\n", "2: [path ww /x/]: there is no [site ww]: did you mean www?\n"},
    {HEAD "[path a]\n", "2: [path a]: expected the first name of a site and a path after it\n"},
    {HEAD "[path a x]\n", "2: [path a x]: expected a prefix such as /iso/, a path such as "
                          "/robots.txt, or a suffix such as *.iso; decoded, without . and .., at "
                          "most 255 bytes\n"},
    {HEAD "[path a /x/]\n[path A /x/]\n", "3: /x/: duplicate; the section on line 2 has it, too\n"},
    {HEAD "[pathe a /x/]\n", "2: [pathe a /x/]: unknown section: did you mean [path SITE PATH]?\n"},
    {HEAD "headr = set a: b\n", "2: headr: unknown in [site a]: did you mean header?\n"},
    {HEAD "[path a /]\nname = b\n", "3: name: unknown in [path a /]: it belongs in [user] or [site "
                                    "NAME]\n"},
    {HEAD "redirect = none\nredirect = https\n",
     "3: redirect: duplicate in [site a]; first set on line 2\n"},
    {HEAD "header = set Content-Length: 5\n",
     "2: header = set content-length: 5: only the server can set or remove this field\n"},
    {HEAD "header = set a: b\nheader = remove A\n",
     "3: header = remove a: a line above changes the same field\n"},
    {HEAD "root = /nowhere/x\n", "2: root = /nowhere/x: /nowhere/x: No such file or directory\n"},
    {HEAD "root = /etc/passwd\n", "2: root = /etc/passwd: /etc/passwd: Not a directory\n"},
    {"[files]\nroot = /usr\n" HEAD "root = nowhere\n",
     "4: root = nowhere: /usr/nowhere: No such file or directory\n"},
    {HEAD "alias = /usr\n", "2: alias: unknown in [site a]: it belongs in [path NAME "
                            "PATH]\n"},
    {HEAD "[path a /x]\nalias = /usr\n", "3: alias: expected in a section whose path ends with "
                                         "/; a rewrite names one file\n"},
    {HEAD "[path a /x/]\nalias = /usr\nrewrite = /y/\n",
     "4: rewrite: the section has an alias, too\n"},
    {HEAD "[path a /x/]\nrewrite = /y/\nalias = /usr\n",
     "4: alias: the section has a rewrite, too\n"},
    {HEAD "error_page = 404 /a\nerror_page = 404 /b\n",
     "3: error_page = 404 /b: a line above has the same status\n"},
    {HEAD "mime = .a a/b\nmime = .A a/c\n",
     "3: mime = .a a/c: a line above has the same extension\n"},
    {HEAD "acme = /usr\n[path a /.well-known/acme-challenge/]\nredirect = https\n",
     "3: /.well-known/acme-challenge/: duplicate; the section on line 1 has it, too\n"},
    {HEAD "deny = nobody\n",
     "2: deny = nobody: there is no [list nobody]: expected names of [list NAME] sections\n"},
    {HEAD "handler = lokup\n", "2: handler = lokup: expected none, or the name of a handler of the "
                               "program: did you mean lookup?\n"},
    {HEAD "handler = /lookup\n",
     "2: handler = /lookup: expected none, or the name of a handler of the program: did you mean "
     "lookup?\n"},
    {HEAD "handler = x_y_z_1\n",
     "2: handler = x_y_z_1: expected none, or the name of a handler of the program\n"},
};

Test(config_site_sections, faults)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        char told[512];

        snprintf(told, sizeof told, "p:%s", bad[i].told);
        cr_expect(!parse(bad[i].text), "%s", bad[i].text);
        cr_expect_str_eq(faults.text ? faults.text : "", told);
    }
}

static const char *const bad_values[] = {
    "redirect = 301",
    "redirect = 300 /x",
    "redirect = 3010 /x",
    "redirect = 301 //evil.example/",
    "redirect = 301 javascript:x",
    "redirect = 301 /$hots",
    "redirect = 301 https://$host$path$path",
    "redirect = 301 https://$host$path?rest=$rest",
    "redirect = 301 /$path",
    "redirect = 301 https://www.example.org$rest",
    "redirect = 301 https://www.example.org:$rest",
    "redirect = 301 https://www.example.org:80$rest",
    "redirect = 301 https://$host$rest",
    "redirect = 301 https://$rest",
    "redirect = 301 https://$path",
    "redirect = 301 https:///x",
    "redirect = 301 https://a@b/",
    "redirect = 301 /a b",
    "redirect = https:0",
    "redirect = https:65536",
    "redirect = http",
    "header = put a: b",
    "header = set a",
    "header = set a:",
    "header = set a b: c",
    "header = remove a: b",
    "header = remove",
    "header = set : b",
    "methods = GET,,POST",
    "methods = GE T",
    "methods = get",
    "methods = GET, any",
    "cors = example.org",
    "try = /index.html",
    "try = $path",
    "try = $path, index.html",
    "try = $path, /../x",
    "try = $path, /a, /b",
    "missing = https://mirror.example/$rest",
    "missing = redirect /x",
    "missing = redirect https://$host/",
    "cors = https://a.example/path",
    "hsts = soon",
    "hsts = 500ms",
    "hsts = 1d, all",
    "hsts = 1d,",
    "cache_control = a\tb\x01",
    "root = a/../b",
    "root = /",
    "root = a//b",
    "root = ./a",
    "index = a/b",
    "index = .a",
    "index = a b c d e f g h i",
    "error_page = 404",
    "error_page = 304 /a",
    "error_page = 404 a",
    "error_page = 404 /../a",
    "error_page = 404/a",
    "mime = wasm application/wasm",
    "mime = .wasm",
    "mime = .wasm wasm",
    "mime = . a/b",
    "default_type = text",
    "listing = maybe",
    "log = /var/log/a",
    "content_disposition = file.iso",
    "acme = none",
    "acme = a/../b",
    "[path a *.x]\nrewrite = /y",
    "[path a /x/]\nrewrite = /y",
    "[path a /x]\nrewrite = /y/",
    "[path a /x/]\nrewrite = /y/../",
    "[path a *.x]\nalias = /usr",
};

/* Each value is refused with its line and what is expected. */
Test(config_site_sections, bad_values)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad_values); i++) {
        char text[200];

        snprintf(text, sizeof text, HEAD "%s\n", bad_values[i]);
        cr_expect(!parse(text), "%s", text);
        cr_expect(faults.text &&
                      strncmp(faults.text, bad_values[i][0] == '[' ? "p:3: " : "p:2: ", 5) == 0 &&
                      strstr(faults.text, ": expected "),
                  "%s: %s", bad_values[i], faults.text);
    }
}

Test(config_site_sections, many)
{
    char *text = NULL;
    size_t n;
    FILE *to = open_memstream(&text, &n);

    cr_assert(to);
    for (int i = 0; i < 1000; i++) {
        fprintf(to, "[site s%d.example]\nheader = set X-Site: %d\n", i, i);
        for (int k = 0; k < 20; k++)
            fprintf(to, "[path s%d.example /p%d/]\nheader = set X-Path: %d\n", i, k, k);
    }
    fclose(to);
    load(text);
    free(text);
    const struct nj_site_rules *r = rules_of("S999.example", "/p19/x");
    cr_assert(r && r->n_fields == 2);
    expect_str(r->fields[0].value, "999");
    expect_str(r->fields[1].value, "19");
}
