/* SPDX-License-Identifier: BSD-3-Clause */
/* Validity of certificates (RFC 5280 4.1.2.5) and of OCSP responses (RFC 6960 4.2.2.1). Clients
 * refuse a certificate outside of it, and the server serves on: only a line tells the operator. */
#include "tls/cert_dates.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include "base/compiler.h"
#include "tls/handshake_internal.h"

#define DAY_S         86400
/* Of certificates that are valid for such a short time, only the last day is worth a line: they are
 * renewed every few days. */
#define SHORT_LIVED_S (10 * (int64_t)DAY_S)

static const int warn_days[] = {30, 7, 1};

/* Stages 1 to NJ_ARRAY_LEN(warn_days) are the days of that array. */
enum { FINE = 0, EXPIRED = 100, NOT_YET };

static int stage(const struct nj__tls_dates *d, int64_t now_s)
{
    int at = FINE;

    if (now_s == NJ_TLS_DATES_UNTOLD)
        return FINE;
    if (now_s < d->from_s)
        return NOT_YET;
    if (now_s > d->until_s)
        return EXPIRED;
    for (int i = 0; i < (int)NJ_ARRAY_LEN(warn_days); i++)
        if (d->until_s - now_s <= warn_days[i] * (int64_t)DAY_S &&
            (warn_days[i] == 1 || d->until_s - d->from_s > SHORT_LIVED_S))
            at = i + 1;
    return at;
}

static const char *utc(int64_t unix_s, char text[32])
{
    time_t t = (time_t)unix_s;
    struct tm tm;

    if (!gmtime_r(&t, &tm) || strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        strcpy(text, "an unknown time");
    return text;
}

static void tell(const struct nj__tls_dates *d, int at, int64_t now_s,
                 struct nj_tls_date_note *note)
{
    static const char *const consequence[] = {
        [NJ__TLS_DATES_OWN] = "clients refuse it",
        [NJ__TLS_DATES_CLIENT_CA] = "certificates of clients that it signed are refused",
        [NJ__TLS_DATES_OCSP] = "it is not sent",
    };
    char what[48] = "the certificate", from[32], until[32], now[32];

    if (d->kind == NJ__TLS_DATES_OCSP)
        strcpy(what, "the OCSP response");
    else if (d->number > 1 || d->kind == NJ__TLS_DATES_CLIENT_CA)
        snprintf(what, sizeof what, "certificate %u of this file", d->number);
    utc(d->from_s, from);
    utc(d->until_s, until);
    note->path = d->path;
    if (at == NOT_YET)
        snprintf(note->text, sizeof note->text,
                 "%s is not valid before %s, and the clock of this host says %s: %s until then",
                 what, from, utc(now_s, now), consequence[d->kind]);
    else if (at == EXPIRED)
        snprintf(note->text, sizeof note->text,
                 "%s expired at %s: %s: renew it, and reload (SIGHUP)", what, until,
                 consequence[d->kind]);
    else
        snprintf(note->text, sizeof note->text,
                 "%s expires at %s, in %d %s: renew it, and reload (SIGHUP)", what, until,
                 (int)((d->until_s - now_s) / (d->until_s - now_s >= 2 * DAY_S ? DAY_S : 3600)),
                 d->until_s - now_s >= 2 * DAY_S ? "days" : "hours");
}

bool nj_tls_dates_next(const struct nj_tls_server_context *c, uint32_t *at, int64_t before_s,
                       int64_t now_s, struct nj_tls_date_note *note)
{
    while (*at < c->n_dates) {
        const struct nj__tls_dates *d = &c->dates[(*at)++];
        int now = stage(d, now_s);
        if (now == FINE || now == stage(d, before_s))
            continue;
        tell(d, now, now_s, note);
        return true;
    }
    return false;
}

bool nj_tls_dates_of_file(const struct nj_tls_server_context *c, uint32_t i,
                          struct nj_tls_dates *out)
{
    static const char *const kind[] = {
        [NJ__TLS_DATES_OWN] = "certificate",
        [NJ__TLS_DATES_CLIENT_CA] = "client_ca",
        [NJ__TLS_DATES_OCSP] = "ocsp",
    };

    if (i >= c->n_dates)
        return false;
    const struct nj__tls_dates *d = &c->dates[i];
    *out = (struct nj_tls_dates){d->path, kind[d->kind], d->from_s, d->until_s};
    return true;
}

int64_t nj__tls_unix_time(const ASN1_TIME *t)
{
    struct tm tm;

    return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

void nj__tls_dates_narrow(struct nj__tls_dates *d, const X509 *cert, uint32_t number)
{
    int64_t from_s = nj__tls_unix_time(X509_get0_notBefore(cert));
    int64_t until_s = nj__tls_unix_time(X509_get0_notAfter(cert));

    if (until_s < d->until_s) {
        d->until_s = until_s;
        d->number = number;
    }
    if (from_s > d->from_s)
        d->from_s = from_s;
}

/* The subjectAltName (RFC 5280 4.2.1.6). */
static void put_names(const X509 *cert, char *text, size_t n)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    size_t at = 0;

    snprintf(text, n, "none");
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names) && at < n; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        char address[INET6_ADDRSTRLEN] = "";
        const unsigned char *bytes = NULL;
        int n_bytes = 0;
        if (name->type == GEN_DNS || name->type == GEN_IPADD) {
            bytes = ASN1_STRING_get0_data(name->d.ia5);
            n_bytes = ASN1_STRING_length(name->d.ia5);
        }
        if (name->type == GEN_IPADD && (n_bytes == 4 || n_bytes == 16)) {
            inet_ntop(n_bytes == 4 ? AF_INET : AF_INET6, bytes, address, sizeof address);
            bytes = (const unsigned char *)address;
            n_bytes = (int)strlen(address);
        }
        if (n_bytes > 0)
            at += (size_t)snprintf(text + at, n - at, "%s%.*s", at ? ", " : "", n_bytes,
                                   (const char *)bytes);
    }
    GENERAL_NAMES_free(names);
}

bool nj_tls_cert_describe(const struct nj_tls_server_context *c, uint32_t i,
                          struct nj_tls_cert_text *out)
{
    uint32_t at = 0, n = 0;

    for (; at < c->n_dates; at++)
        if (c->dates[at].kind == NJ__TLS_DATES_OWN && n++ == i)
            break;
    if (i >= c->n_certs || at == c->n_dates)
        return false;
    out->path = c->dates[at].path;
    utc(c->dates[at].until_s, out->expires);
    put_names(c->cert[i], out->names, sizeof out->names);
    return true;
}

void nj_tls_cert_of_name(const struct nj_tls_server_context *c, const char *name,
                         struct nj_tls_cert_text *out)
{
    struct nj_site_identity of;
    bool is_known;
    const X509 *cert = nj__tls_choose(c, name, &of, &is_known)->cert;
    uint32_t i = 0;

    while (i + 1 < c->n_certs && X509_cmp(c->cert[i], cert) != 0)
        i++;
    nj_tls_cert_describe(c, i, out);
}
