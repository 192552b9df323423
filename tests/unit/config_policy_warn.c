/* SPDX-License-Identifier: BSD-3-Clause */
/* Warnings of --check for valid policy files that are probably not intended. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "config/policy_warn.h"

static struct nj_diags warnings;

static void fini(void)
{
    nj_diags_free(&warnings);
}

TestSuite(config_policy_warn, .fini = fini);

static const char *warn(const char *text, const struct nj_server_config *given)
{
    struct nj_diags faults = {0};
    struct nj_server_config effective = *given;

    fini();
    struct nj_policy_file *f = nj_policy_file_parse("p", text, strlen(text), &effective, &faults);
    cr_assert(f, "%s", faults.text);
    nj_policy_warn(f, "p", given, &warnings);
    nj_policy_file_free(f);
    return warnings.text ? warnings.text : "";
}

/* `told`: the only line, without "p:" and "warning: "; "": no line. */
static const struct {
    const char *text, *told;
} cases[] = {
    {"[class a]\npath = /iso/ ; all of it\n", "2: path = /iso/ ; all of it: what begins with ; is "
                                              "part of the value: start a comment with #"},
    {"[class a]\nheader = X-A: b;c # right\npath = /a;b\n", ""},
    {"[class a]\npath = /iso/*\n", "2: path = /iso/*: * is taken literally; a path matches "
                                   "everything with that prefix, e.g. /iso/"},

    {"[site a]\nheader = set X-A: \"b\"\nheader = set X-B: b\n",
     "2: header = set x-a: \"b\": the quotes are part of the value: remove them"},
    {"[files]\nroot = /usr\n[site a]\nerror_page = 404 /none.html\nerror_page = 500 none\n",
     "4: error_page = 404 /none.html: there is no file /usr/none.html"},

    {"[class a]\nrate = 5B/s\n", "1: [class a]: matches nothing: add path, host, list or header"},

    /* Classes behind broader ones. */
    {"[class a]\npath = /\n[class b]\npath = /b/\n",
     "3: [class b]: never matches: [class a] on line 1 comes first and matches all its requests"},
    {"[class b]\npath = /b/\n[class a]\npath = /\n", ""},
    {"[class a]\npath = /a/\n[class b]\npath = /a/b/, /c/\n",
     "4: [class b]: never matches below /a/b/: [class a] on line 1 comes first"},
    {"[class a]\nhost = x.org\n[class b]\npath = /b/\n", ""},
    {"[class a]\nhost = x.org\n[class b]\npath = /b/\nhost = x.org\n",
     "3: [class b]: never matches: [class a] on line 1 comes first and matches all its requests"},
    {"[class a]\npath = /\nhours = 01:00-02:00\n[class b]\npath = /b/\n", ""},
    {"[class a]\npath = /\nhours = 01:00-02:00\n[class b]\npath = /b/\nhours = 01:00-02:00\n",
     "4: [class b]: never matches: [class a] on line 1 comes first and matches all its requests"},
    {"[list l]\nnetworks = 192.0.2.0/24\n[class a]\nlist = l\n[class b]\npath = /\n", ""},
    {"[list l]\nnetworks = 192.0.2.0/24\n[class a]\nlist = l\n[class b]\npath = /\nlist = l\n",
     "5: [class b]: never matches: [class a] on line 3 comes first and matches all its requests"},
    {"[class a]\nheader = X-T\n[class b]\nheader = X-T: gold\n",
     "3: [class b]: never matches: [class a] on line 1 comes first and matches all its requests"},
    {"[class a]\nheader = X-T: gold\n[class b]\nheader = X-T\n", ""},

    /* Rates. */
    {"[server]\nrate = 10MiB/s\n[class a]\npath = /a/\nrate = 8MiB/s\n[class b]\npath = /b/\n"
     "rate = 4MiB/s\n",
     "2: the class rates add up to 12MiB/s, more than the server's 10MiB/s: no class is guaranteed "
     "its rate; use ceiling for an upper bound"},
    {"[server]\nrate = 10MiB/s\n[class a]\npath = /a/\nrate = 8MiB/s\n[class b]\npath = /b/\n"
     "ceiling = 4MiB/s\n",
     ""},
    {"[server]\nrate = 10MiB/s\n[class a]\npath = /a/\nrate = 8MiB/s\n[class b]\npath = /b/\n"
     "rate = 1MiB/s\n[class b 03:00-04:30]\nrate = 3MiB/s\n",
     "2: the class rates add up to 11MiB/s from 03:00 on, more than the server's 10MiB/s: no class "
     "is guaranteed its rate; use ceiling for an upper bound"},

    /* Keys without effect. */
    {"[server]\ndeny_action = reset\n",
     "2: deny_action: without effect: neither allow nor deny is set"},
    {"[class a]\npath = /\nretry_after = 5s\n",
     "3: retry_after: without effect: the action is not 429"},
    {"[class a]\npath = /\naction = 429\nretry_after = 5s\n", ""},
    {"[class a]\npath = /\naction = forbid\nstreams = 5\n",
     "4: streams: without effect: no request of this class is served"},
    {"[class a]\npath = /\nrate_after = 5KiB\n",
     "3: rate_after: without effect: neither request_rate nor request_ceiling is set"},
    {"[class default]\nrequest_rate = 1MiB/s\n[class a]\npath = /\nrate_after = 5KiB\n", ""},
    {"[class a]\npath = /\nrequests_burst = 5\n",
     "3: requests_burst: without effect: requests is not set"},
    {"[class a]\npath = /\nclient_burst = 64KiB\n",
     "3: client_burst: without effect: neither client_rate nor client_ceiling is set"},
    {"[class a]\npath = /\nrate = 1MiB/s\nclient_rate = 2MiB/s\n",
     "4: client_rate: without effect: the class has a lower limit"},
    {"[class a]\npath = /\nclient_rate = 1MiB/s\nrequest-rate = 2MiB/s\n",
     "4: request_rate: without effect: a client has a lower limit"},
    {"[client]\nby = header X-Who\ntrusted_proxy = 10.0.0.0/8, 0.0.0.0/0\n",
     "3: 0.0.0.0/0: every host is a trusted proxy: connections are not limited, and a header may "
     "name any client"},
    {"[client]\nby = header X-Who\ntrusted_proxy = 10.0.0.0/8, 2001:db8::/32\n", ""},
    {"[list l]\nnetworks = 192.0.2.0/24\n",
     "1: [list l]: without effect: no class, site, allow or deny names it"},
    {"[site a]\n[path a /x/]\nmethods = GET\n",
     "2: other hosts: the same files without the rules of this section: repeat them in each site, "
     "also in [site default], or use a class"},
    {"[site a]\n[path a /x/]\nmethods = GET\n[site default]\nheader = remove Server\n",
     "2: other hosts: the same files without the rules of this section: repeat them in each site, "
     "also in [site default], or use a class"},
    {"[site a]\n[path a /x/]\nmethods = GET\n[site b]\n[site default]\nmethods = GET\n",
     "2: [site b]: the same files without the rules of this section: repeat them in each site, "
     "also in [site default], or use a class"},
    {"[site a]\n[path a /x/]\nmethods = GET\n[site default]\nmethods = GET\n", ""},
    {"[site a]\n[path a /x/]\nmethods = GET\n[site default]\nredirect = 302 https://a/\n", ""},

    /* Keys of a section that contradict each other. */
    {"[site a]\n[path a /x/]\nredirect = 301 /y\ntry = $path, /f\n",
     "4: try: without effect: redirect on line 3 answers first: remove one of them"},
    {"[site a]\nredirect = 301 /y/z\nmissing = redirect https://b/$path\n[path a /y/]\n"
     "redirect = none\n",
     ""},
    {"[site a]\ntry = $path, /f\nmissing = redirect https://b/$path\n",
     "3: missing: without effect: try on line 2 sends its file: remove one of them"},
    {"[site a]\nredirect = 302 /down.html\n",
     "2: redirect = 302 /down.html: a loop: a request for /x comes back to this section: set "
     "redirect = none for the target, in a [path] section"},
    {"[site a]\nredirect = 302 /down.html\n[path a /down.html]\nredirect = none\n", ""},
    {"[site a]\nredirect = 301 http://$host/x$path\n",
     "2: redirect = 301 http://$host/x$path: a loop: a request for /x comes back to this section: "
     "set redirect = none for the target, in a [path] section"},
    {"[site a]\n[path a /x/]\nredirect = 301 http://b/x/\n[site b]\nredirect = 301 http://a$path\n",
     "3: redirect = 301 http://b/x/: a loop: a request for /x/x comes back to this section: set "
     "redirect = none for the target, in a [path] section\n"
     "p:5: warning: redirect = 301 http://a$path: a loop: a request for /x comes back to this "
     "section: set redirect = none for the target, in a [path] section"},
    {"[site a]\nredirect = 301 https://$host$path\n", ""}, /* another server may have https */
    {"[site a]\nredirect = https\n", "2: redirect = https: no port of this server speaks https: "
                                     "set cert and key in [site NAME] or [tls]"},
    {"[site a]\nhsts = 1d\n",
     "2: hsts = 1d: no port of this server speaks https: set cert and key in [site NAME] or [tls]"},
    {"[site a]\nhsts = 1d\nredirect = https\n[client]\ntrusted_proxy = 10.0.0.0/8\n", ""},
    {"[site a]\nredirect = https\n[tls]\ncert = c\nkey = k\nport = 8443\n",
     "2: redirect = https: https is at port 8443 of this server: expected redirect = https:8443"},
    {"[site a]\nredirect = https:8443\n[tls]\ncert = c\nkey = k\nport = 8443\n", ""},
    {"[site a]\nhsts = 30d, preload\n[tls]\ncert = c\nkey = k\n",
     "2: hsts = 30d, preload: browsers preload only with subdomains and a year at least: expected "
     "365d, subdomains, preload"},
    {"[site a]\nhsts = 365d, subdomains, preload\n[tls]\ncert = c\nkey = k\n", ""},
    {"[site a]\ncors = *\nheader = set Access-Control-Allow-Origin: *\n",
     "2: cors: a line header = ... access-control-allow-origin of this section changes the same "
     "field: remove one of them"},
    {"[site default]\nallow = l\ndeny = l\n[list l]\nnetworks = 192.0.2.1\n",
     "2: allow: [list l] without effect: deny on line 3 has it, too: remove one of them"},
    {"[site a]\n[path a /x/*.iso]\ncors = *\n",
     "2: [path a /x/*.iso]: * is taken literally: expected a prefix such as /iso/ or a suffix such "
     "as *.iso; no section combines them"},
    {"[site a]\n[path a /x/]\n", "2: [path a /x/]: without effect: the section has no key"},
    {"[files]\nroot = /etc\n[site a]\ntry = $path, /passwd\n[path a /x/]\ntry = $path, /no\n",
     "6: try = $path, /no: there is no file /etc/no"},

    /* What is probably meant otherwise. */
    {"[files]\ncache_control = \"no-store\"\n",
     "2: cache_control = \"no-store\": the quotes are part of the value: remove them"},
    {"[files]\ncache_control = no-store;\n",
     "2: cache_control = no-store;: the ; is part of the value: remove it"},
    {"[site a]\n[path a /o]\nredirect = 301 /x#y\n",
     "3: redirect = 301 /x: the value ends before #, which begins a comment; write \\# for a # of "
     "the value"},
    {"[site a]\n[path a /o]\nredirect = 301 /x\\#y # a comment\n", ""},
    {"[network]\nport = 80\n",
     "2: port = 80: this is DPDK's number of a port, 0, 1, ...; the port of TCP is listen = 80"},
    {"[network]\nport = 1=3-4\n[tls]\ncert = c\nport = 8443\n", ""},
};

Test(config_policy_warn, one_line_each)
{
    struct nj_server_config none;
    char want[512];

    nj_server_config_init(&none);
    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        const char *line = cases[i].told, *text = line ? strchr(line, ' ') : NULL;
        want[0] = '\0';
        if (*line)
            snprintf(want, sizeof want, "p:%.*s warning:%s\n", (int)(text - line), line, text);
        cr_expect_str_eq(warn(cases[i].text, &none), want);
    }
}

Test(config_policy_warn, the_command_line_wins)
{
    struct nj_server_config given;

    nj_server_config_init(&given);
    given.rate = 1 << 20;
    given.streams_per_client = 3;
    given.listing = true;
    cr_expect_str_eq(
        warn("[server]\nrate = 2MiB/s\n[class default]\nstreams = 5\nrequests = 1\n[files]\n"
             "listing = yes\nindex = a\n",
             &given),
        "p:2: warning: rate: without effect: overridden by --rate on the command line\n"
        "p:4: warning: streams: without effect: overridden by --streams-per-client on the command "
        "line\n"
        "p:7: warning: listing: without effect: overridden by --listing on the command line\n");
}
