/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts UNIX time to IMF-fixdate, and HTTP-dates in all three formats to UNIX time (RFC 9110
 * 5.6.7). Calendar dates are proleptic Gregorian; no locale, clock or time zone is used. */
#include "http/proto/date.h"

#include <stddef.h>
#include <string.h>

#define DAY_S 86400

/* 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: the range of four-digit years. */
#define UNIX_MIN (-62135596800)
#define UNIX_MAX 253402300799

static const char day_names[] = "MonTueWedThuFriSatSun"; /* 0001-01-01 was a Monday */
static const char month_names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const uint8_t month_days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

struct civil {
    uint32_t year, month, day; /* month 0..11, day 1..31 */
};

static bool is_leap(uint32_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static uint32_t days_in(uint32_t year, uint32_t month)
{
    return month_days[month] + (month == 1 ? is_leap(year) : 0);
}

/* Gregorian date of `days` since 0001-01-01. */
static struct civil civil_from_days(uint32_t days)
{
    struct civil c = {.year = 1};

    /* Whole cycles of 400, 100, 4 years and 1 year. The last day of a leap cycle would count as a
     * fourth century or a fourth year, hence the clamps. */
    c.year += days / 146097 * 400;
    days %= 146097;
    uint32_t n = days / 36524 < 3 ? days / 36524 : 3;
    c.year += n * 100;
    days -= n * 36524;
    c.year += days / 1461 * 4;
    days %= 1461;
    n = days / 365 < 3 ? days / 365 : 3;
    c.year += n;
    days -= n * 365;

    for (;;) {
        uint32_t in_month = days_in(c.year, c.month);
        if (days < in_month)
            break;
        days -= in_month;
        c.month++;
    }
    c.day = days + 1;
    return c;
}

static void put_digits(char *out, uint32_t v, uint32_t n)
{
    while (n-- > 0) {
        out[n] = (char)('0' + v % 10);
        v /= 10;
    }
}

void nj_date_format(int64_t unix_s, char out[NJ_DATE_BYTES])
{
    unix_s = unix_s < UNIX_MIN ? UNIX_MIN : unix_s > UNIX_MAX ? UNIX_MAX : unix_s;
    uint64_t s = (uint64_t)(unix_s - UNIX_MIN);
    uint32_t days = (uint32_t)(s / DAY_S), in_day = (uint32_t)(s % DAY_S);
    struct civil c = civil_from_days(days);

    memcpy(out, "Ddd, 00 Mmm 0000 00:00:00 GMT", NJ_DATE_BYTES);
    memcpy(out, day_names + 3 * (days % 7), 3);
    put_digits(out + 5, c.day, 2);
    memcpy(out + 8, month_names + 3 * c.month, 3);
    put_digits(out + 12, c.year, 4);
    put_digits(out + 17, in_day / 3600, 2);
    put_digits(out + 20, in_day / 60 % 60, 2);
    put_digits(out + 23, in_day % 60, 2);
}

struct nj_str nj_date_cached(struct nj_date_cached *d, int64_t unix_s)
{
    if (unix_s != d->unix_s || d->text[0] == '\0') {
        nj_date_format(unix_s, d->text);
        d->unix_s = unix_s;
    }
    return (struct nj_str){d->text, NJ_DATE_BYTES};
}

/* --- parsing --- */

/* Each step advances or clears `ok` */

struct scan {
    const char *p, *end;
    bool ok;
};

static void expect(struct scan *s, const char *literal)
{
    size_t n = strlen(literal);

    s->ok = s->ok && (size_t)(s->end - s->p) >= n && memcmp(s->p, literal, n) == 0;
    s->p += s->ok ? n : 0;
}

static uint32_t scan_digits(struct scan *s, uint32_t n)
{
    uint32_t v = 0;

    s->ok = s->ok && s->end - s->p >= (ptrdiff_t)n;
    for (; s->ok && n > 0; n--, s->p++) {
        s->ok = *s->p >= '0' && *s->p <= '9';
        v = 10 * v + (uint32_t)(*s->p - '0');
    }
    return s->ok ? v : 0;
}

/* Index of a three-letter name in `names`. */
static uint32_t scan_name3(struct scan *s, const char *names)
{
    for (uint32_t i = 0; s->ok && s->end - s->p >= 3 && names[3 * (size_t)i]; i++) {
        if (memcmp(s->p, names + 3 * (size_t)i, 3) == 0) {
            s->p += 3;
            return i;
        }
    }
    s->ok = false;
    return 0;
}

struct date_time {
    struct civil day;
    uint32_t hour, minute, second;
};

static void read_time(struct scan *s, struct date_time *m)
{
    m->hour = scan_digits(s, 2);
    expect(s, ":");
    m->minute = scan_digits(s, 2);
    expect(s, ":");
    m->second = scan_digits(s, 2);
}

/* ", 06 Nov 1994 08:49:37 GMT" */
static void read_fixdate(struct scan *s, struct date_time *m)
{
    expect(s, ", ");
    m->day.day = scan_digits(s, 2);
    expect(s, " ");
    m->day.month = scan_name3(s, month_names);
    expect(s, " ");
    m->day.year = scan_digits(s, 4);
    expect(s, " ");
    read_time(s, m);
    expect(s, " GMT");
}

static int64_t unix_of(const struct date_time *m)
{
    uint32_t y = m->day.year - 1, in_year = m->day.day - 1;

    for (uint32_t i = 0; i < m->day.month; i++)
        in_year += days_in(m->day.year, i);
    int64_t days = (int64_t)y * 365 + y / 4 - y / 100 + y / 400 + in_year;
    return UNIX_MIN + days * DAY_S + (int64_t)m->hour * 3600 + m->minute * 60 + m->second;
}

/* "day, 06-Nov-94 08:49:37 GMT". A date more than 50 years from now is one of the past (RFC 9110
 * 5.6.7). */
static void read_rfc850(struct scan *s, uint32_t weekday, int64_t now_s, struct date_time *m)
{
    static const char *const rests[] = {"day", "sday", "nesday", "rsday", "day", "urday", "day"};

    expect(s, rests[weekday]);
    expect(s, ", ");
    m->day.day = scan_digits(s, 2);
    expect(s, "-");
    m->day.month = scan_name3(s, month_names);
    expect(s, "-");
    uint32_t in_century = scan_digits(s, 2);
    expect(s, " ");
    read_time(s, m);
    expect(s, " GMT");

    now_s = now_s < 0 ? 0 : now_s > UNIX_MAX ? UNIX_MAX : now_s;
    uint32_t in_day = (uint32_t)((now_s - UNIX_MIN) % DAY_S);
    struct date_time latest = {civil_from_days((uint32_t)((now_s - UNIX_MIN) / DAY_S)),
                               in_day / 3600, in_day / 60 % 60, in_day % 60};
    latest.day.year = latest.day.year + 50 < 9999 ? latest.day.year + 50 : 9999;
    m->day.year = latest.day.year - latest.day.year % 100 + in_century;
    if (s->ok && unix_of(m) > unix_of(&latest))
        m->day.year -= 100;
}

/* " Nov  6 08:49:37 1994" */
static void read_asctime(struct scan *s, struct date_time *m)
{
    expect(s, " ");
    m->day.month = scan_name3(s, month_names);
    expect(s, " ");
    if (s->end - s->p > 0 && *s->p == ' ') {
        s->p++;
        m->day.day = scan_digits(s, 1);
    } else {
        m->day.day = scan_digits(s, 2);
    }
    expect(s, " ");
    read_time(s, m);
    expect(s, " ");
    m->day.year = scan_digits(s, 4);
}

bool nj_date_parse(struct nj_str text, int64_t now_s, int64_t *unix_s)
{
    struct scan s = {text.p, text.p + text.n_bytes, true};
    struct date_time m = {0};
    uint32_t weekday = scan_name3(&s, day_names);

    if (s.p == s.end)
        return false;
    if (*s.p == ',')
        read_fixdate(&s, &m);
    else if (*s.p == ' ')
        read_asctime(&s, &m);
    else
        read_rfc850(&s, weekday, now_s, &m);
    if (!s.ok || s.p != s.end || m.day.year == 0 || m.day.day == 0 ||
        m.day.day > days_in(m.day.year, m.day.month) || m.hour > 23 || m.minute > 59 ||
        m.second > 60) /* a leap second */
        return false;
    *unix_s = unix_of(&m);
    return true;
}
