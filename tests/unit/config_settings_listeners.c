/* SPDX-License-Identifier: BSD-3-Clause */
/* [listen NAME] and the options of ports: one table, the messages for mistakes, and what a reload
 * cannot change. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "config/policy_warn.h"
#include "config/settings_validate.h"
#include "support/scratch.h"

#define NETWORK    "[network]\naddr = 198.18.0.2/24\naddr = 2001:db8::2/64\n" /* 3 lines */
#define TLS        "[tls]\ncert = a.pem\nkey = a.pem\n"
#define PROXIES    "[client]\ntrusted_proxy = 192.0.2.0/24\n"
#define WEB        "[listen web]\nport = 80\n"
#define NOT_OURS   "not an address of the server: expected one of addr in [network], or any"
#define AN_ADDRESS "expected any, or one address of the server, e.g. 192.0.2.10; port has the port"
#define HAVE_ALL   ": the sections of listeners have all ports, the first one is [listen web] at "

static struct nj_settings s;
static char path[64], told[1024];

static void end(void)
{
    nj_settings_free(&s);
    scratch_remove();
}

TestSuite(config_settings_listeners, .init = scratch_make, .fini = end);

/* Reads such a file. What is wrong with it is in `told`, without the folder of the file. */
static bool read_file(struct nj_server_config *c, const char *text)
{
    char why[512] = "";

    nj_settings_free(&s);
    snprintf(path, sizeof path, "%s/f", scratch);
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
    c->policy_file = path;
    bool ok = nj_settings_from_partial_config(&s, c, why, sizeof why) == 0;
    snprintf(told, sizeof told, "%s", s.faults.text ? s.faults.text : why);
    for (char *at; (at = strstr(told, path));)
        memmove(at, at + strlen(scratch) + 1, strlen(at + strlen(scratch) + 1) + 1);
    return ok;
}

static bool read_text(const char *text)
{
    struct nj_server_config c;

    nj_server_config_init(&c);
    return read_file(&c, text);
}

static void expect_listener(uint32_t i, const char *at, bool is_tls, bool has_proxy)
{
    const struct nj_listener *l = &s.listeners.at[i];
    char text[NJ_LISTENER_TEXT_BYTES];

    cr_expect_str_eq(nj__listener_format(l, text), at);
    cr_expect(l->is_tls == is_tls && l->has_proxy == has_proxy, "%s", at);
}

Test(config_settings_listeners, sections)
{
    cr_assert(read_text(NETWORK TLS PROXIES WEB
                        "[listen secure]\ntls = yes\n[listen  front_1]\nport = 8080\n"
                        "address = 198.18.0.2\nproxy_protocol = yes\n[listen v6]\n"
                        "address = 2001:db8::2\n[listen x]\naddress = any\nport = 65535\n"
                        "tls = no\nproxy_protocol = no\n"),
              "%s", told);
    cr_assert_eq(s.listeners.n, 5);
    expect_listener(0, "80", false, false);
    expect_listener(1, "443", true, false);
    expect_listener(2, "198.18.0.2:8080", false, true);
    expect_listener(3, "[2001:db8::2]:80", false, false);
    expect_listener(4, "65535", false, false);
}

/* One table, whatever fills it. */
Test(config_settings_listeners, options)
{
    cr_assert(read_text(NETWORK), "%s", told);
    cr_expect_eq(s.listeners.n, 1);
    expect_listener(0, "80", false, false);
    cr_assert(
        read_text(NETWORK "listen = 8080\nproxy_protocol = 8443\n" TLS "port = 8443\n" PROXIES),
        "%s", told);
    cr_expect_eq(s.listeners.n, 2);
    expect_listener(0, "8080", false, false);
    expect_listener(1, "8443", true, true);
}

/* SLAAC makes addresses later; without --addr --check knows none. */
Test(config_settings_listeners, addresses_that_may_be_ours)
{
    cr_expect(read_text("[listen web]\naddress = 192.0.2.1\n"), "%s", told);
    cr_expect(read_text("[network]\naddr = auto6\n[listen web]\naddress = 2001:db8::9\n"), "%s",
              told);
    cr_expect(!read_text("[network]\naddr = auto6\n[listen web]\naddress = 192.0.2.1\n"));
}

Test(config_settings_listeners, mistakes)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"[listen]\n", "f:1: [listen]: expected one name after it\n"},
        {"[listen a b]\n", "f:1: [listen a b]: expected one name after it\n"},
        {"[listen a-b]\n",
         "f:1: [listen a-b]: expected a name of up to 31 letters, digits and _\n"},
        {"[lisen a]\n", "f:1: [lisen a]: unknown section: did you mean [listen NAME]?\n"},
        {WEB "[listen  web]\n", "f:3: [listen  web]: duplicate; first set on line 1\n"},
        {"[listen a]\nport = 0\n", "f:2: port = 0: expected a port from 1 to 65535\n"},
        {"[listen a]\nport = 65536\n", "f:2: port = 65536: expected a port from 1 to 65535\n"},
        {"[listen a]\nport = http\n", "f:2: port = http: expected a port from 1 to 65535\n"},
        {"[listen a]\ntls = on\n", "f:2: tls = on: expected yes or no\n"},
        {"[listen a]\nproxy_protocol = 80\n", "f:2: proxy_protocol = 80: expected yes or no\n"},
        {"[listen a]\nadress = any\n",
         "f:2: adress: unknown in [listen a]: did you mean address?\n"},
        {"[listen a]\ncert = a\n",
         "f:2: cert: unknown in [listen a]: it belongs in [tls] or [site NAME]\n"},
        {"[listen a]\naddress = *\n", "f:2: address = *: " AN_ADDRESS "\n"},
        {"[listen a]\naddress = 198.18.0.2:80\n", "f:2: address = 198.18.0.2:80: " AN_ADDRESS "\n"},
        {"[listen a]\naddress = 198.18.0.2/24\n", "f:2: address = 198.18.0.2/24: " AN_ADDRESS "\n"},
        {WEB "[listen b]\n", "f:3: [listen b]: listens at 80, as [listen web] on line 1 does: "
                             "expected another port or address\n"},
        {WEB "[listen b]\nport = 443\n[listen c]\ntls = yes\n",
         "f:5: [listen c]: listens at 443, as [listen b] on line 3 does: expected another port or "
         "address\n"},
        {"[listen a]\naddress = 2001:db8::2\n[listen b]\naddress = 2001:DB8:0::2\n",
         "f:3: [listen b]: listens at [2001:db8::2]:80, as [listen a] on line 1 does: expected "
         "another port or address\n"},
        {NETWORK "[listen a]\naddress = 198.18.0.3\n", "f:5: address = 198.18.0.3: " NOT_OURS},
        {NETWORK "[listen a]\naddress = 0.0.0.0\n", "f:5: address = 0.0.0.0: " NOT_OURS},
        {"[listen a]\ntls = yes\n", "f:2: tls = yes: there is no certificate: set cert and key in "
                                    "[site NAME] or [tls], or tls = no"},
        {"[listen a]\nproxy_protocol = yes\n",
         "f:2: proxy_protocol = yes: set trusted_proxy = NETWORK in [client]: only these may "
         "connect to that port"},
        {"[network]\nlisten = 80\n" WEB,
         "f:2: listen" HAVE_ALL "f:3: remove this, and set port = PORT in such a section"},
        {WEB TLS "port = 443\n",
         "f:6: port" HAVE_ALL "f:1: remove this, and set port = PORT and tls = yes in such a "
         "section"},
        {WEB "[network]\nproxy-protocol = 80\n",
         "f:4: proxy_protocol" HAVE_ALL "f:1: remove this, and set proxy_protocol = yes in such a "
         "section"},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        cr_expect(!read_text(cases[i].text), "%s", cases[i].text);
        cr_expect_str_eq(told, cases[i].told);
    }
}

Test(config_settings_listeners, too_many)
{
    char text[1024] = "";
    size_t at = 0;

    for (uint32_t i = 1; i <= NJ_LISTENERS_MAX; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "[listen a%u]\nport = %u\n", i, i);
    cr_expect(read_text(text), "%s", told);
    snprintf(text + at, sizeof text - at, "[listen b]\nport = 99\n");
    cr_expect(!read_text(text));
    cr_expect_str_eq(told, "f:17: [listen b]: expected at most 8 sections of listeners\n");
}

/* An option of a port does not change what the file has, and is not ignored either. */
Test(config_settings_listeners, options_beside_sections)
{
    static const char *const options[][2] = {
        {"listen", "80"}, {"tls-port", "8443"}, {"proxy-protocol", "80"}};
    char want[256];

    for (size_t i = 0; i < NJ_ARRAY_LEN(options); i++) {
        struct nj_server_config c;
        nj_server_config_init(&c);
        cr_assert_eq(nj_server_config_set(&c, options[i][0], options[i][1], told, sizeof told), 0);
        cr_expect(!read_file(&c, WEB));
        snprintf(want, sizeof want, "--%s" HAVE_ALL "f:1: ", options[i][0]);
        cr_expect_eq(strncmp(told, want, strlen(want)), 0, "%s", told);
    }
}

static const char *warnings_of(const char *text, struct nj_diags *warnings)
{
    struct nj_server_config c;

    nj_server_config_init(&c);
    cr_assert(read_file(&c, text), "%s", told);
    nj_diags_free(warnings);
    nj_policy_warn(s.policy, path, &c, warnings);
    return warnings->text ? warnings->text : "";
}

Test(config_settings_listeners, warnings)
{
    struct nj_diags warnings = {0};

    cr_expect(strstr(warnings_of(TLS WEB, &warnings),
                     ":2: warning: cert: without effect: no section [listen NAME] has tls = yes"));
    cr_expect(strstr(warnings_of(TLS WEB "[site a]\nredirect = https\n", &warnings),
                     "no port of this server speaks https: set tls = yes in [listen NAME]"));
    const char *both = TLS WEB "[listen a]\ntls = yes\nport = 8443\n[listen b]\ntls = yes\n"
                               "port = 9443\n[site a]\nredirect = https:9443\n";
    cr_expect_str_eq(warnings_of(both, &warnings), "");
    const char *other = TLS WEB "[listen a]\ntls = yes\nport = 8443\n[site a]\nredirect = https\n";
    cr_expect(strstr(warnings_of(other, &warnings), "https is at port 8443 of this server"));
    nj_diags_free(&warnings);
}

/* The running server keeps its listeners; a reload names those that differ. */
Test(config_settings_listeners, a_reload_names_changes)
{
    struct nj_server_config first_config, config;
    struct nj_diags notes = {0}, faults = {0};
    const char *before = WEB "[listen b]\nport = 81\n[listen c]\nport = 82\n",
               *after = "[listen c]\nport = 83\n[listen web]\nport = 80\n[listen d]\nport = 81\n";

    nj_server_config_init(&first_config);
    config = first_config;
    struct nj_policy_file *first =
        nj_policy_file_parse("f", before, strlen(before), &first_config, &faults);
    struct nj_policy_file *f = nj_policy_file_parse("f", after, strlen(after), &config, &faults);
    cr_assert(first && f, "%s", faults.text);
    nj_policy_file_keep_restart_keys(f, first, &first_config, &config, &notes);
    cr_expect_eq(notes.n, 3, "%s", notes.text);
    cr_expect(strstr(notes.text, "f: [listen b]: 81 -> not set: needs a restart") &&
                  strstr(notes.text, "f:1: [listen c]: 82 -> 83: needs a restart") &&
                  strstr(notes.text, "f:5: [listen d]: not set -> 81: needs a restart"),
              "%s", notes.text);
    nj_diags_free(&notes);
    nj_policy_file_keep_restart_keys(f, f, &config, &config, &notes);
    cr_expect_eq(notes.n, 0, "%s", notes.text);
    nj_policy_file_free(first);
    nj_policy_file_free(f);
}
