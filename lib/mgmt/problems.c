/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/relaxed_atomics.h"
#include "log/address_text.h"
#include "mgmt/full_tables.h"
#include "threads/os_clock.h"
#include "tls/cert_dates.h"

#define SUPERVISOR_STALL (2 * NJ_SEC) /* it runs every 20 ms */
#define EXPIRES_SOON_S   (14 * INT64_C(86400))
/* Of certificates that are valid for a short time, only the last third of it is soon. */
#define SOON_PART        3
#define FILES_SHOWN      16u /* of the certificates with a problem; the others are counted */
#define TEXT_BYTES       512u

/* Who is told. */
struct listener {
    nj__problem_fn *tell;
    void *ctx;
};

static void tell(const struct listener *to, enum nj__problem_kind kind, const char *fmt, ...)
    NJ_PRINTF(3, 4);
static void tell(const struct listener *to, enum nj__problem_kind kind, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    to->tell(to->ctx, kind, text);
}

const char *nj__problem_name(enum nj__problem_kind kind)
{
    static const char *const name[NJ__PROBLEM_N_KINDS] = {
        [NJ__PROBLEM_SUPERVISOR_STUCK] = "supervisor-stuck",
        [NJ__PROBLEM_STARTING] = "starting",
        [NJ__PROBLEM_DRAINING] = "draining",
        [NJ__PROBLEM_YIELDING] = "yielding",
        [NJ__PROBLEM_PORT_DOWN] = "port-down",
        [NJ__PROBLEM_ADDRESS_TENTATIVE] = "address-tentative",
        [NJ__PROBLEM_LCORE_STUCK] = "lcore-stuck",
        [NJ__PROBLEM_CERTIFICATE_EXPIRED] = "certificate-expired",
        [NJ__PROBLEM_CERTIFICATE_EXPIRES] = "certificate-expires",
        [NJ__PROBLEM_TABLE_FULL] = "table-full",
        [NJ__PROBLEM_RELOAD_FAILED] = "reload-failed",
    };

    return name[kind];
}

/* --- the server ------------------------------------------------------------------------------- */

bool nj__mgmt_is_healthy(const struct nj_mgmt_view *v)
{
    nj_ns at = atomic_load(v->supervised_at), now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);

    return at == 0 || now < at + SUPERVISOR_STALL;
}

static void tell_state(const struct nj_mgmt_view *v, const struct listener *to)
{
    if (!nj__mgmt_is_healthy(v))
        tell(to, NJ__PROBLEM_SUPERVISOR_STUCK, "the supervisor does not run");
    else if (atomic_load(v->supervised_at) == 0)
        tell(to, NJ__PROBLEM_STARTING, "the server starts");
    else if (atomic_load(v->is_stopping))
        tell(to, NJ__PROBLEM_DRAINING, "the server stops");
    else if (atomic_load(v->is_yielding))
        tell(to, NJ__PROBLEM_YIELDING, "another process takes new connections");
}

/* --- ports, addresses, lcores ----------------------------------------------------------------- */

/* As the first shard of the port sees them: it runs their duplicate address detection. */
static void tell_addresses(const struct nj_iface *iface, const struct listener *to)
{
    unsigned n = __atomic_load_n(&iface->n_addrs, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < n; i++) {
        struct nj_iface_addr a;
        char text[NJ_ADDRESS_TEXT_BYTES];
        nj_iface_addr_read_published(&iface->addr[i], &a);
        if (a.state == NJ_ADDR_TENTATIVE)
            tell(to, NJ__PROBLEM_ADDRESS_TENTATIVE, "address %s is tentative",
                 nj_address_text(&a.ip, text));
    }
}

static void tell_ports(const struct nj_mgmt_view *v, const struct listener *to)
{
    for (uint32_t k = 0; k < v->n_ports; k++) {
        const struct nj_mgmt_port *p = &v->port[k];
        if (!nj_mgmt_read_port_stats(v, p).link_up)
            tell(to, NJ__PROBLEM_PORT_DOWN, "port %u (%s) has no link", p->dev->id, p->dev->name);
        tell_addresses(&v->shard[p->first]->cfg.iface, to);
    }
}

static void tell_lcores(const struct nj_mgmt_view *v, const struct listener *to)
{
    nj_ns most = atomic_load(v->ready_stall);

    for (uint32_t i = 0; i < v->n_shards; i++) {
        nj_ns time = atomic_load(&v->unpolled[i]);
        if (time > most)
            tell(to, NJ__PROBLEM_LCORE_STUCK, "lcore %u has not polled for %lu ms", v->lcore[i].id,
                 (unsigned long)(time / NJ_MS));
    }
}

/* --- certificates ----------------------------------------------------------------------------- */

static const char *utc(int64_t unix_s, char text[32])
{
    time_t t = (time_t)unix_s;
    struct tm tm;

    if (!gmtime_r(&t, &tm) || strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(text, 32, "an unknown time");
    return text;
}

/* False: nothing is wrong with the file. */
static bool judge_dates(const struct nj_tls_dates *d, int64_t now_s, enum nj__problem_kind *kind,
                        const char **what, int64_t *at_s)
{
    int64_t left = d->until_s - now_s, valid = d->until_s - d->from_s;

    *kind = NJ__PROBLEM_CERTIFICATE_EXPIRED;
    *at_s = d->until_s;
    if (now_s < d->from_s) {
        *what = "is not valid before";
        *at_s = d->from_s;
    } else if (left < 0) {
        *what = "expired at";
    } else if (left < EXPIRES_SOON_S && left < valid / SOON_PART) {
        *kind = NJ__PROBLEM_CERTIFICATE_EXPIRES;
        *what = "expires at";
    } else {
        return false;
    }
    return true;
}

static const char *noun(const char *kind)
{
    return strcmp(kind, "ocsp") == 0 ? "OCSP response" : "certificate";
}

static void tell_certificates_of(const struct nj_tls_server_context *context,
                                 enum nj__problem_kind wanted, const struct listener *to)
{
    int64_t now_s = (int64_t)time(NULL), at_s;
    uint32_t n = 0;
    struct nj_tls_dates d;

    for (uint32_t i = 0; nj_tls_dates_of_file(context, i, &d); i++) {
        enum nj__problem_kind kind;
        const char *what;
        char at[32];
        if (judge_dates(&d, now_s, &kind, &what, &at_s) && kind == wanted && n++ < FILES_SHOWN)
            tell(to, kind, "%s: the %s %s %s", d.path, noun(d.kind), what, utc(at_s, at));
    }
    if (n > FILES_SHOWN)
        tell(to, wanted, "so do %u other files of certificates", n - FILES_SHOWN);
}

static void tell_certificates(const struct nj_mgmt_view *v, const struct listener *to)
{
    struct nj_tls_server_context *context = v->tls ? nj_tls_current_context_take(v->tls) : NULL;

    if (!context)
        return;
    tell_certificates_of(context, NJ__PROBLEM_CERTIFICATE_EXPIRED, to);
    tell_certificates_of(context, NJ__PROBLEM_CERTIFICATE_EXPIRES, to);
    nj_tls_server_context_put(context);
}

/* --- tables ----------------------------------------------------------------------------------- */

static void tell_tables(const struct nj_mgmt_view *v, const struct listener *to)
{
    struct nj__full_table t;

    for (uint32_t i = 0; i < nj__n_tables; i++)
        if (nj__table_is_full(v, i, &t))
            tell(to, NJ__PROBLEM_TABLE_FULL, "%s: %lu of %lu in use on lcore %u%s", t.name,
                 (unsigned long)t.used, (unsigned long)t.max, t.lcore,
                 t.n_lcores > 1 ? ", and full on others" : "");
    if (v->other_clients && (nj_load_relaxed(&v->other_clients->n_streams) > 0 ||
                             nj_load_relaxed(&v->other_clients->n_conns) > 0))
        tell(to, NJ__PROBLEM_TABLE_FULL, "clients: some have no entry of their own");
}

void nj__problems_find(const struct nj_mgmt_view *v, nj__problem_fn *tell_one, void *ctx)
{
    const struct listener to = {tell_one, ctx};

    tell_state(v, &to);
    tell_ports(v, &to);
    tell_lcores(v, &to);
    tell_certificates(v, &to);
    tell_tables(v, &to);
    if (atomic_load(&v->reloads->has_failed))
        tell(&to, NJ__PROBLEM_RELOAD_FAILED,
             "the last reload failed: the former configuration is in force");
}
