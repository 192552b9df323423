/* SPDX-License-Identifier: BSD-3-Clause */
/* When an operator is told that certificates and OCSP responses expire, in virtual time. */
#include "support/tls_meeting.h"
#include "tls/cert_dates.h"

TestSuite(tls_cert_dates, .init = begin, .fini = end);

#define DAY   ((int64_t)86400)
#define BEGAN ((int64_t)1750000000) /* UNIX time; 2025-06-15T15:06:40Z */

static struct test_cert dated, chained;

/* Signs the certificate again, with other dates. */
static void set_dates(struct test_cert *c, int64_t from_s, int64_t until_s)
{
    ASN1_TIME_set(X509_getm_notBefore(c->x), (time_t)from_s);
    ASN1_TIME_set(X509_getm_notAfter(c->x), (time_t)until_s);
    cr_assert_gt(X509_sign(c->x, c->pkey, EVP_sha256()), 0);
    write_pem(c);
}

static struct nj_tls_server_context *context_of(const char *client_ca)
{
    const struct nj_tls_identity_files files = {dated.cert, dated.key};
    const struct nj_tls_server_config config = {
        .identities = &files, .n_identities = 1, .client_ca = client_ca};
    struct nj_tls_server_context *context = nj_tls_server_context_new(&config, why, sizeof why);

    cr_assert(context, "%s", why);
    return context;
}

/* With a certificate from BEGAN on. */
static struct nj_tls_server_context *context_until(int64_t end_s)
{
    make_cert(&dated, folder, "dated", "a.test", false, NULL);
    set_dates(&dated, BEGAN, end_s);
    return context_of(NULL);
}

/* The lines at `now_s`, if `before_s` was the time of the last look; "" for none. */
static const char *lines(const struct nj_tls_server_context *context, int64_t before_s,
                         int64_t now_s)
{
    static char text[1024];
    struct nj_tls_date_note note;
    uint32_t at = 0;
    size_t n = 0;

    text[0] = '\0';
    while (nj_tls_dates_next(context, &at, before_s, now_s, &note))
        n += (size_t)snprintf(text + n, sizeof text - n, "%s: %s\n", strrchr(note.path, '/') + 1,
                              note.text);
    return text;
}

static void expect_line(const struct nj_tls_server_context *context, int64_t before_s,
                        int64_t now_s, const char *wanted)
{
    const char *text = lines(context, before_s, now_s);

    cr_expect(wanted ? strstr(text, wanted) != NULL : text[0] == '\0', "%s instead of %s", text,
              wanted ? wanted : "nothing");
}

/* Each line comes once, when its time is reached, however often somebody looks. */
Test(tls_cert_dates, thirty_seven_and_one_days_before_and_after_the_end)
{
    static const struct {
        int64_t left_s;
        const char *text;
    } wanted[] = {{30 * DAY, "expires at 2025-09-13T15:06:40Z, in 30 days: renew it"},
                  {7 * DAY, "in 7 days"},
                  {DAY, "in 24 hours"},
                  {-1, "expired at 2025-09-13T15:06:40Z: clients refuse it: renew it"}};
    int64_t end_s = BEGAN + 90 * DAY, before_s = BEGAN;
    unsigned n = 0;

    struct nj_tls_server_context *context = context_until(end_s);
    expect_line(context, NJ_TLS_DATES_UNTOLD, BEGAN, NULL);
    for (int64_t now_s = BEGAN; now_s < end_s + 2 * DAY; now_s += 61) {
        const char *text = lines(context, before_s, now_s);
        if (text[0]) {
            cr_assert_lt(n, NJ_ARRAY_LEN(wanted));
            cr_expect_leq(now_s, end_s - wanted[n].left_s + 61);
            cr_expect_geq(now_s, end_s - wanted[n].left_s);
        }
        before_s = now_s;
        n += text[0] != '\0';
    }
    cr_expect_eq(n, NJ_ARRAY_LEN(wanted));
    for (n = 0; n < NJ_ARRAY_LEN(wanted); n++) {
        int64_t at_s = end_s - wanted[n].left_s;
        expect_line(context, at_s - 1, at_s, wanted[n].text);
        expect_line(context, NJ_TLS_DATES_UNTOLD, at_s, wanted[n].text);
        expect_line(context, at_s, at_s + 1, NULL);
    }
    nj_tls_server_context_put(context);
    free_cert(&dated);
}

Test(tls_cert_dates, a_certificate_that_is_not_valid_yet)
{
    struct nj_tls_server_context *context = context_until(BEGAN + 90 * DAY);
    expect_line(context, NJ_TLS_DATES_UNTOLD, BEGAN - DAY,
                "the certificate is not valid before 2025-06-15T15:06:40Z, and the clock of this "
                "host says 2025-06-14T15:06:40Z: clients refuse it until then");
    expect_line(context, BEGAN - DAY, BEGAN - 1, NULL);
    expect_line(context, BEGAN - 1, BEGAN, NULL);
    nj_tls_server_context_put(context);
    free_cert(&dated);
}

/* It is renewed every few days. */
Test(tls_cert_dates, a_short_lived_certificate_is_told_about_on_its_last_day)
{
    struct nj_tls_server_context *context = context_until(BEGAN + 6 * DAY);
    expect_line(context, NJ_TLS_DATES_UNTOLD, BEGAN, NULL);
    expect_line(context, BEGAN, BEGAN + 5 * DAY, "in 24 hours");
    nj_tls_server_context_put(context);
    free_cert(&dated);
}

Test(tls_cert_dates, dates_of_each_file)
{
    struct nj_tls_dates d;

    make_cert(&chained, folder, "chained", "b.test", false, NULL);
    make_cert(&dated, folder, "dated", "a.test", false, NULL);
    set_dates(&dated, BEGAN, BEGAN + 90 * DAY);
    set_dates(&chained, BEGAN - DAY, BEGAN + 40 * DAY);
    struct nj_tls_server_context *context = context_of(chained.cert);
    cr_assert(nj_tls_dates_of_file(context, 0, &d));
    cr_expect_str_eq(d.path, dated.cert);
    cr_expect_str_eq(d.kind, "certificate");
    cr_expect(d.from_s == BEGAN && d.until_s == BEGAN + 90 * DAY);
    cr_assert(nj_tls_dates_of_file(context, 1, &d));
    cr_expect_str_eq(d.path, chained.cert);
    cr_expect_str_eq(d.kind, "client_ca");
    cr_expect(d.from_s == BEGAN - DAY && d.until_s == BEGAN + 40 * DAY);
    cr_expect_not(nj_tls_dates_of_file(context, 2, &d));
    nj_tls_server_context_put(context);
    free_cert(&chained);
    free_cert(&dated);
}

/* The one that expires first counts; an authority of clients has words of its own. */
Test(tls_cert_dates, certificates_of_a_chain_and_of_an_authority)
{
    make_cert(&dated, folder, "dated", "a.test", false, NULL);
    make_cert(&chained, folder, "chained", "b.test", false, NULL);
    set_dates(&dated, BEGAN, BEGAN + 90 * DAY);
    set_dates(&chained, BEGAN, BEGAN + 40 * DAY);
    FILE *f = fopen(dated.cert, "ae");
    cr_assert(f && PEM_write_X509(f, chained.x) == 1);
    fclose(f);
    struct nj_tls_server_context *context = context_of(chained.cert);
    expect_line(context, NJ_TLS_DATES_UNTOLD, BEGAN + 20 * DAY,
                "dated.crt: certificate 2 of this file expires at 2025-07-25T15:06:40Z, in 20 "
                "days: renew it, and reload (SIGHUP)\nchained.crt: certificate 1 of this file "
                "expires");
    expect_line(context, BEGAN + 39 * DAY + 1, BEGAN + 41 * DAY,
                "certificates of clients that it signed are refused");
    nj_tls_server_context_put(context);
    free_cert(&dated);
    free_cert(&chained);
}
