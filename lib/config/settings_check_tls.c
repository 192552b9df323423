/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that the settings of TLS fit together, finds what each site has for TLS, and reads the
 * files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/keyed_hash.h"
#include "base/set_error.h"
#include "config/config_by_name.h"
#include "config/settings_validate.h"
#include "config/site_sections.h"

#define CERTS_MAX NJ_SERVER_TLS_CERTS_MAX

/* --- sites ------------------------------------------------------------------------------------ */

/* The certificates of a site. */
static int read_pairs(struct nj_settings *s, uint32_t site, char *why, size_t n)
{
    struct nj_site_sections *sites = s->policy->sites;
    const struct nj_ini_section *at = sites->site_at[site];
    struct nj_tls_identity_files *pair = &sites->pairs[(size_t)site * CERTS_MAX];
    const struct nj_ini_entry *first = NULL;
    uint32_t n_certs = 0, n_keys = 0;

    for (uint32_t k = at->first; k < at->first + at->n; k++) {
        const struct nj_ini_entry *e = &s->policy->ini->entry[k];
        bool is_cert = strcmp(e->key, "cert") == 0;
        if (!is_cert && strcmp(e->key, "key") != 0)
            continue;
        first = first ? first : e;
        if (is_cert && n_certs++ < CERTS_MAX)
            pair[n_certs - 1].cert = e->value;
        else if (!is_cert && n_keys++ < CERTS_MAX)
            pair[n_keys - 1].key = e->value;
    }
    sites->tls[site] = (struct nj_tls_set){.identities = pair, .n_identities = n_certs};
    if (n_certs == n_keys && n_certs <= CERTS_MAX)
        return 0;
    return nj_set_error(why, n,
                        "%s:%u: each cert of [%s] needs its key%s: lines with cert: %u, with key: "
                        "%u",
                        first->file, first->line, at->name,
                        n_certs == n_keys ? ", and 16 of each are possible" : "", n_certs, n_keys);
}

/* Clients without a server name, or with one of no site, need a certificate, too. As nginx, the
 * server has that of the default site, else of the first one. */
static void give_certs_of_site(struct nj_settings *s)
{
    const struct nj_site_sections *sites = s->policy->sites;
    const struct nj_tls_set *from = NULL;

    for (uint32_t i = 0; i < sites->n_sites; i++)
        if (sites->tls[i].n_identities > 0 && (!from || sites->sites[i].n_names == 0))
            from = &sites->tls[i];
    for (uint32_t i = 0; from && i < from->n_identities; i++) {
        s->effective.tls_cert[i] = from->identities[i].cert;
        s->effective.tls_key[i] = from->identities[i].key;
    }
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    static const struct nj_mix_key key = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};

    return nj_mix_bytes(&key, h, text, (uint32_t)strlen(text));
}

/* Sets with the same certificates and demands on clients have the same hash. */
static uint64_t hash_set(const struct nj_tls_set *set)
{
    uint64_t h = hash_text(set->client_cert_required, set->client_ca ? set->client_ca : "");

    for (uint32_t i = 0; i < set->n_identities; i++)
        h = hash_text(hash_text(h, set->identities[i].cert), set->identities[i].key);
    return set->n_identities > 0 ? h | 1 : 0; /* 0: there is no TLS */
}

/* What a site does not say is as in [tls], which `own` has. */
static int complete_site(struct nj_settings *s, uint32_t site, const struct nj_tls_set *own,
                         char *why, size_t n)
{
    struct nj_site_sections *sites = s->policy->sites;
    struct nj_site_def *def = &sites->sites[site];
    struct nj_tls_set *set = &sites->tls[site];
    const struct nj_ini_entry *ca = nj__policy_entry_in(s->policy, sites->site_at[site],
                                                        "client_ca", NULL),
                              *optional = nj__policy_entry_in(s->policy, sites->site_at[site],
                                                              "client_optional", NULL);
    bool is_optional = optional && strcmp(optional->value, "yes") == 0;

    if (set->n_identities == 0) {
        set->identities = own->identities;
        set->n_identities = own->n_identities;
    }
    set->client_ca = !ca ? own->client_ca : strcmp(ca->value, "none") == 0 ? NULL : ca->value;
    set->client_cert_required =
        set->client_ca && (ca || optional ? !is_optional : own->client_cert_required);
    set->id = hash_set(set);
    def->own_files = own->id;
    def->rules.identity = (struct nj_site_identity){
        hash_text(1, def->n_names > 0 ? def->names[0].p : "default"), set->id};
    if (set->client_ca && set->n_identities == 0)
        return nj_set_error(why, n,
                            "%s:%u: client_ca needs cert and key, in this section or in [tls]",
                            ca->file, ca->line);
    if (is_optional && !set->client_ca)
        return nj_set_error(why, n, "%s:%u: client_optional needs client_ca", optional->file,
                            optional->line);
    return 0;
}

/* A section whose requests can only get 403. */
static int check_client_cert(const struct nj_settings *s, const struct nj_ini_section *at,
                             const struct nj_site_rules *rules, uint32_t site, char *why, size_t n)
{
    const struct nj_ini_entry *e = nj__policy_entry_in(s->policy, at, "client_cert", NULL);

    if (!rules->needs_client_cert || s->policy->sites->tls[site].client_ca)
        return 0;
    return nj_set_error(why, n,
                        "%s:%u: client_cert = required: no client is asked for a certificate: set "
                        "client_ca in [%s] or in [tls]",
                        e->file, e->line, s->policy->sites->site_at[site]->name);
}

static int complete_sites(struct nj_settings *s, char *why, size_t n)
{
    const struct nj_server_config *c = s->config;
    const struct nj_site_sections *sites = s->policy->sites;
    struct nj_tls_set *own = &sites->tls[sites->n_sites];
    struct nj_tls_identity_files *pair = &sites->pairs[(size_t)sites->n_sites * CERTS_MAX];
    int rc = 0;

    *own = (struct nj_tls_set){.identities = pair,
                               .n_identities = nj_config_count_values(c->tls_cert, CERTS_MAX),
                               .client_ca = c->tls_client_ca,
                               .client_cert_required = c->tls_client_ca && !c->tls_client_optional};
    for (uint32_t i = 0; i < own->n_identities; i++)
        pair[i] = (struct nj_tls_identity_files){c->tls_cert[i], c->tls_key[i]};
    own->id = hash_set(own);
    for (uint32_t i = 0; rc == 0 && i < sites->n_sites; i++)
        rc = complete_site(s, i, own, why, n);
    for (uint32_t i = 0; rc == 0 && i < sites->n_sites; i++)
        rc = check_client_cert(s, sites->site_at[i], &sites->sites[i].rules, i, why, n);
    for (uint32_t i = 0; rc == 0 && i < sites->n_paths; i++)
        rc = check_client_cert(s, sites->path_at[i], &sites->paths[i].rules, sites->paths[i].site,
                               why, n);
    return rc;
}

static int read_certs_of_sites(struct nj_settings *s, char *why, size_t n)
{
    struct nj_site_sections *sites = s->policy->sites;
    size_t n_sets = sites->n_sites + (size_t)1;

    sites->tls = calloc(n_sets, sizeof *sites->tls);
    sites->pairs = calloc(n_sets * CERTS_MAX, sizeof *sites->pairs);
    if (!sites->tls || !sites->pairs)
        return nj_set_error(why, n, "out of memory");
    for (uint32_t i = 0; i < sites->n_sites; i++)
        if (read_pairs(s, i, why, n) != 0)
            return -1;
    if (!s->config->tls_cert[0])
        give_certs_of_site(s);
    return 0;
}

/* --- all -------------------------------------------------------------------------------------- */

static int check_options(const struct nj_server_config *c, char *why, size_t why_bytes)
{
    bool has_tls = c->tls_cert[0] != NULL;

    if (!has_tls && (c->tls_ocsp[0] || c->tls_client_ca || c->tls_keylog))
        return nj_set_error(why, why_bytes,
                            "%s needs --tls-cert and --tls-key, without which there is no TLS",
                            c->tls_ocsp[0]     ? "--tls-ocsp"
                            : c->tls_client_ca ? "--tls-client-ca"
                                               : "--keylog");
    if (c->tls_client_optional && !c->tls_client_ca)
        return nj_set_error(why, why_bytes, "--tls-client-optional needs --tls-client-ca");
    if (has_tls && c->tls_port == c->listen_port)
        return nj_set_error(why, why_bytes, "--tls-port and --listen must differ: both are %u",
                            c->tls_port);
    if (c->tls_keylog && !c->insecure_keylog)
        return nj_set_error(why, why_bytes,
                            "--keylog needs --insecure-keylog: whoever reads that file can decrypt "
                            "all connections");
    return 0;
}

int nj__settings_check_tls(struct nj_settings *s, char *why, size_t why_bytes)
{
    const struct nj_server_config *c = s->config;
    unsigned n_certs = nj_config_count_values(c->tls_cert, CERTS_MAX),
             n_keys = nj_config_count_values(c->tls_key, CERTS_MAX);

    if (n_certs != n_keys)
        return nj_set_error(why, why_bytes,
                            "each --tls-cert needs its --tls-key: there are %u certificates and "
                            "%u keys",
                            n_certs, n_keys);
    if (read_certs_of_sites(s, why, why_bytes) != 0 || check_options(c, why, why_bytes) != 0)
        return -1;
    return complete_sites(s, why, why_bytes);
}

bool nj_settings_ask_clients(const struct nj_settings *s)
{
    const struct nj_site_sections *sites = s->policy->sites;

    for (uint32_t i = 0; i <= sites->n_sites; i++)
        if (sites->tls[i].client_ca)
            return true;
    return false;
}

/* The identities of server names. NULL: there is no memory. */
static struct nj_sites *make_names(const struct nj_site_sections *sites, uint64_t own)
{
    struct nj_site_def *defs = calloc(sites->n_sites, sizeof *defs);
    struct nj_sites *names = NULL;
    const char *cause;

    for (uint32_t i = 0; defs && i < sites->n_sites; i++)
        defs[i] = (struct nj_site_def){.names = sites->sites[i].names,
                                       .n_names = sites->sites[i].n_names,
                                       .own_files = own,
                                       .rules.identity = sites->sites[i].rules.identity};
    if (defs)
        names = nj_sites_new(defs, sites->n_sites, NULL, 0, 0, &cause);
    free(defs);
    return names;
}

/* Puts "FILE:LINE: " of the key before an error of a file, "PATH: ...". Two sites may have the same
 * key: if the error names the certificate, too, it is that of the section. */
static void name_key(const struct nj_policy_file *f, char *why, size_t n)
{
    const char *pair = strstr(why, " certificate in "), *path = pair ? pair + 16 : NULL;
    const struct nj_ini_entry *found = NULL;
    char text[1024];

    for (uint32_t i = 0; i < f->ini->n_sections; i++) {
        const struct nj_ini_section *s = &f->ini->section[i];
        const struct nj_ini_entry *cert = nj__policy_entry_in(f, s, "cert", path);
        for (uint32_t k = s->first; k < s->first + s->n && !found; k++) {
            const struct nj_ini_entry *e = &f->ini->entry[k];
            size_t len = strlen(e->value);
            if (nj_config_word_index("cert|key|client_ca|ocsp", e->key) >= 0 &&
                strncmp(why, e->value, len) == 0 && why[len] == ':' &&
                (!path || (cert && strcmp(cert->value, path) == 0)))
                found = e;
        }
    }
    if (found && snprintf(text, sizeof text, "%s:%u: %s", found->file, found->line, why) > 0)
        snprintf(why, n, "%s", text);
}

int nj_settings_read_tls(const struct nj_settings *s, const struct nj_tls_server_config *running,
                         struct nj_tls_server_context **out, char *why, size_t why_bytes)
{
    const struct nj_server_config *c = s->config;
    const struct nj_site_sections *sites = s->policy->sites;
    const struct nj_tls_set *own = &sites->tls[sites->n_sites];
    struct nj_tls_server_config config = *running;

    *out = NULL;
    if (!c->tls_cert[0])
        return 0;
    config.id = own->id;
    config.identities = own->identities;
    config.n_identities = own->n_identities;
    config.client_ca = own->client_ca;
    config.client_cert_required = own->client_cert_required;
    config.sets = sites->tls;
    config.n_sets = sites->n_sites;
    config.ocsp = c->tls_ocsp;
    config.n_ocsp = nj_config_count_values(c->tls_ocsp, CERTS_MAX);
    config.http1 = !c->no_http1;
    if (sites->n_sites > 0 && !(config.sites = make_names(sites, own->id)))
        return nj_set_error(why, why_bytes, "out of memory");
    *out = nj_tls_server_context_new(&config, why, why_bytes);
    if (!*out)
        name_key(s->policy, why, why_bytes);
    return *out ? 0 : -1;
}
