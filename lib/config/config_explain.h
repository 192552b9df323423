/* SPDX-License-Identifier: BSD-3-Clause */
/* What answers a request, for --check --explain, and the listeners that take one. One thread. */
#pragma once

#include "config/check_report.h"
#include "config/settings_validate.h"
#include "tls/cert_dates.h"

/* --explain: reports what answers a request for the URL of the configuration: listener,
 * certificate, site, sections of paths, class, and the lines of the keys that apply. `tls` NULL:
 * there is no TLS. Returns 0, or -1 with the reason in `why`, before anything is reported. */
int nj__config_explain(const struct nj_settings *s, const struct nj_tls_server_context *tls,
                       struct nj__report *r, char *why, size_t n);

/* A certificate, with its names and its end. */
void nj__report_certificate(struct nj__report *r, const struct nj_tls_cert_text *cert);

/* Reports the i-th listener. */
void nj__report_listener(struct nj__report *r, const struct nj_settings *s, uint32_t i);
