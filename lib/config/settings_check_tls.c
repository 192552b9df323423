/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that the settings of TLS fit together, and for --check, that the files can be used. */
#include "base/set_error.h"
#include "config/config_by_name.h"
#include "config/settings_validate.h"
#include "tls/cert_dates.h"

int nj__settings_check_tls(const struct nj_settings *s, char *why, size_t why_bytes)
{
    const struct nj_server_config *c = s->config;
    unsigned n_certs = nj_config_count_values(c->tls_cert, NJ_SERVER_TLS_CERTS_MAX),
             n_keys = nj_config_count_values(c->tls_key, NJ_SERVER_TLS_CERTS_MAX);

    if (n_certs != n_keys)
        return nj_set_error(why, why_bytes,
                            "each --tls-cert needs its --tls-key: there are %u certificates and "
                            "%u keys",
                            n_certs, n_keys);
    if (n_certs == 0 && (c->tls_ocsp[0] || c->tls_client_ca || c->tls_keylog))
        return nj_set_error(why, why_bytes,
                            "%s needs --tls-cert and --tls-key, without which there is no TLS",
                            c->tls_ocsp[0]     ? "--tls-ocsp"
                            : c->tls_client_ca ? "--tls-client-ca"
                                               : "--keylog");
    if (c->tls_client_optional && !c->tls_client_ca)
        return nj_set_error(why, why_bytes, "--tls-client-optional needs --tls-client-ca");
    if (n_certs > 0 && c->tls_port == c->listen_port)
        return nj_set_error(why, why_bytes, "--tls-port and --listen must differ: both are %u",
                            c->tls_port);
    if (c->tls_keylog && !c->insecure_keylog)
        return nj_set_error(why, why_bytes,
                            "--keylog needs --insecure-keylog: whoever reads that file can decrypt "
                            "all connections");
    return 0;
}

void nj_settings_tls_config(const struct nj_server_config *c,
                            struct nj_tls_identity_files files[NJ_SERVER_TLS_CERTS_MAX],
                            struct nj_tls_server_config *out)
{
    *out = (struct nj_tls_server_config){
        .identities = files,
        .n_identities = nj_config_count_values(c->tls_cert, NJ_SERVER_TLS_CERTS_MAX),
        .ocsp = c->tls_ocsp,
        .n_ocsp = nj_config_count_values(c->tls_ocsp, NJ_SERVER_TLS_CERTS_MAX),
        .client_ca = c->tls_client_ca,
        .client_cert_required = !c->tls_client_optional,
        .http1 = !c->no_http1,
    };
    for (uint32_t i = 0; i < out->n_identities; i++)
        files[i] = (struct nj_tls_identity_files){c->tls_cert[i], c->tls_key[i]};
}

int nj_settings_check_tls_files(const struct nj_server_config *c, int64_t now_s,
                                struct nj_diags *warnings, struct nj_tls_server_context **out,
                                char *why, size_t why_bytes)
{
    struct nj_tls_identity_files files[NJ_SERVER_TLS_CERTS_MAX];
    struct nj_tls_server_config config;
    struct nj_tls_date_note note;
    uint32_t at = 0;

    nj_settings_tls_config(c, files, &config);
    *out = NULL;
    if (config.n_identities == 0)
        return 0;
    *out = nj_tls_server_context_new(&config, why, why_bytes);
    while (*out && nj_tls_dates_next(*out, &at, NJ_TLS_DATES_UNTOLD, now_s, &note))
        nj_diag_add(warnings, note.path, 0, "warning: %s", note.text);
    return *out ? 0 : -1;
}
