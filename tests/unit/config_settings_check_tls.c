/* SPDX-License-Identifier: BSD-3-Clause */
/* What [tls] and sites say of TLS together: which sites share certificates and authorities, and the
 * messages for what does not fit. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/compiler.h"
#include "config/settings_validate.h"
#include "config/site_sections.h"
#include "support/scratch.h"

static struct nj_settings settings;
static struct nj_server_config config;
static char path[128], why[512];

static void fini(void)
{
    nj_settings_free(&settings);
    scratch_remove();
}

TestSuite(config_settings_check_tls, .fini = fini);

static bool load(const char *text)
{
    if (!scratch[0])
        scratch_make();
    snprintf(path, sizeof path, "%s/nightjar.conf", scratch);
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs(text, f) > 0 && fclose(f) == 0);
    nj_settings_free(&settings);
    nj_server_config_init(&config);
    config.policy_file = path;
    return nj_settings_from_partial_config(&settings, &config, why, sizeof why) == 0;
}

static uint64_t files_of(uint32_t site)
{
    return settings.policy->sites->sites[site].rules.identity.files;
}

/* Of hosts without a site. */
static uint64_t own_files(void)
{
    return settings.policy->sites->tls[settings.policy->sites->n_sites].id;
}

static const struct nj_tls_set *set_of(uint32_t site)
{
    return &settings.policy->sites->tls[site];
}

Test(config_settings_check_tls, sites_share_what_is_equal)
{
    cr_assert(load("[tls]\ncert = t\nkey = tk\nclient_ca = ca\nclient_optional = yes\n"
                   "[site a]\ncert = a\nkey = ak\n"   /* the authority of [tls], optional */
                   "[site b]\n"                       /* all of [tls] */
                   "[site c]\nclient_ca = none\n"     /* no authority */
                   "[site d]\ncert = a\nkey = ak\n"   /* as a */
                   "[site e]\nclient_ca = ca\n"       /* required */
                   "[site f]\nclient_optional = no\n" /* as e */
                   "[site g]\ncert = t\nkey = tk\n"   /* as [tls] */
                   "[site h]\ncert = a\nkey = ak\ncert = t\nkey = tk\n"
                   "[site i]\nclient_ca = ca\nclient_optional = yes\n"), /* as [tls] */
              "%s%s", why, settings.faults.text);
    cr_expect(files_of(0) != own_files() && files_of(0) == files_of(3));
    cr_expect(files_of(1) == own_files() && files_of(6) == own_files() &&
              files_of(8) == own_files());
    cr_expect(files_of(4) != own_files() && files_of(4) == files_of(5));
    cr_expect(files_of(2) != own_files() && files_of(2) != files_of(4) &&
              files_of(2) != files_of(0));
    cr_expect(files_of(7) != own_files() && files_of(7) != files_of(0));
    cr_expect(set_of(7)->n_identities == 2 && set_of(1)->n_identities == 1);
    cr_expect_str_eq(set_of(0)->client_ca, "ca");
    cr_expect_not(set_of(0)->client_cert_required);
    cr_expect_null(set_of(2)->client_ca);
    cr_expect(set_of(4)->client_cert_required && set_of(5)->client_cert_required);
    cr_expect_neq(settings.policy->sites->sites[0].rules.identity.site,
                  settings.policy->sites->sites[3].rules.identity.site);
    cr_expect(nj_settings_ask_clients(&settings));
}

/* As nginx: the default server, else the first one. */
Test(config_settings_check_tls, a_site_has_the_certificate_of_other_names)
{
    cr_assert(load("[site a]\n[site b]\ncert = b\nkey = bk\n[site c]\ncert = c\nkey = ck\n"),
              "%s%s", why, settings.faults.text);
    cr_expect_str_eq(settings.config->tls_cert[0], "b");
    cr_expect_null(settings.config->tls_cert[1]);
    cr_expect(files_of(0) == own_files() && files_of(1) == own_files() &&
              files_of(2) != own_files());
    cr_expect_not(nj_settings_ask_clients(&settings));
    cr_assert(load("[site b]\ncert = b\nkey = bk\n[site default]\ncert = d\nkey = dk\n"), "%s",
              why);
    cr_expect_str_eq(settings.config->tls_cert[0], "d");
    cr_expect_str_eq(settings.config->tls_key[0], "dk");
    cr_expect(files_of(0) != own_files() && files_of(1) == own_files());
    cr_assert(load("[site b]\ncert = b\nkey = bk\n[site default]\n"), "%s", why);
    cr_expect_str_eq(settings.config->tls_cert[0], "b");
    cr_assert(load("[site b]\n[site default]\n"), "%s", why);
    cr_expect_null(settings.config->tls_cert[0]);
}

Test(config_settings_check_tls, files_are_listed_once)
{
    static struct nj_needed_file file[NJ_SETTINGS_FILES_MAX];
    uint32_t n_certs = 0;

    cr_assert(load("[tls]\ncert = a\nkey = ak\n[site a]\ncert = a\nkey = ak\n"
                   "[site b]\ncert = b\nkey = ak\nclient_ca = ca\n[site c]\nclient_ca = none\n"),
              "%s", why);
    uint32_t n = nj_settings_list_files(&settings, file);
    for (uint32_t i = 0; i < n; i++)
        n_certs += file[i].need == NJ_NEED_READ && strcmp(file[i].path, path) != 0 &&
                   strcmp(file[i].path, "/etc/mime.types") != 0;
    cr_expect_eq(n_certs, 4, "a, ak, b, ca");
}

Test(config_settings_check_tls, mistakes)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"[site a]\ncert = a\n", ":2: each cert of [site a] needs its key: lines with cert: 1, "
                                 "with key: 0"},
        {"[site a]\nindex = b\nkey = a\n", ":3: each cert of [site a] needs its key"},
        {"[site a]\nclient_ca = c\n", ":2: client_ca needs cert and key, in this section or in "
                                      "[tls]"},
        {"[site a]\ncert = a\nkey = a\nclient_optional = yes\n",
         ":4: client_optional needs client_ca"},
        {"[tls]\ncert = a\nkey = a\nclient_ca = c\n[site a]\nclient_ca = none\n"
         "client_optional = yes\n",
         ":7: client_optional needs client_ca"},
        {"[site a]\ncert = a\nkey = a\n[path a /x/]\nclient_cert = required\n",
         ":5: client_cert = required: no client is asked for a certificate: set client_ca in "
         "[site a] or in [tls]"},
        {"[site default]\nclient_cert = required\n", ":2: client_cert = required: no client is "},
        {"[tls]\nport = 80\n[site a]\ncert = a\nkey = a\n", ":2: port and [network] listen must "},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        cr_expect_not(load(cases[i].text), "%s", cases[i].text);
        cr_expect(strncmp(why, path, strlen(path)) == 0 && strstr(why, cases[i].told), "%s: %s",
                  cases[i].text, why);
    }
    char text[1024] = "[site a]\n";
    for (int i = 0; i < 17; i++)
        strcat(text, "cert = a\nkey = a\n");
    cr_expect_not(load(text));
    cr_expect(strstr(why, "and 16 of each are possible: lines with cert: 17, with key: 17"), "%s",
              why);
    cr_assert(load("[tls]\ncert = a\nkey = a\nclient_ca = c\n[site a]\nacme = /tmp\n"
                   "client_cert = required\n[path a /x/]\nclient_cert = none\n"),
              "%s", why);
}

Test(config_settings_check_tls, an_unreadable_file_has_the_line_of_its_key)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"[site a]\ncert = /none/a\nkey = /none/k\n",
         ":2: /none/a: cannot be used as certificate: "},
        {"[tls]\nkey = /none/k\ncert = /none/b\n", ":3: /none/b: cannot be used as certificate: "},
        {"[site a]\ncert = /none/b\nkey = /none/k\n[site default]\nkey = /none/k\ncert = /none/a\n",
         ":6: /none/a: cannot be used as certificate: "},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++) {
        struct nj_tls_server_context *tls;

        cr_assert(load(cases[i].text), "%s", why);
        cr_expect_eq(nj_settings_read_tls(&settings, &(struct nj_tls_server_config){0}, &tls, why,
                                          sizeof why),
                     -1);
        cr_expect(strncmp(why, path, strlen(path)) == 0 && strstr(why, cases[i].told), "%s", why);
    }
}
