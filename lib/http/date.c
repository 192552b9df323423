/* SPDX-License-Identifier: BSD-3-Clause */
/* UNIX time to IMF-fixdate, without locale, clock or time zone. */
#include "http/date.h"

#include <string.h>

#define DAY_S 86400

/* 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: the years that four digits can show. */
#define UNIX_MIN (-62135596800)
#define UNIX_MAX 253402300799

struct civil {
    uint32_t year, month, day; /* month 0..11, day 1..31 */
};

static uint32_t is_leap(uint32_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Gregorian date of `days` since 0001-01-01. */
static struct civil civil_from_days(uint32_t days)
{
    static const uint8_t month_days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
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
        uint32_t in_month = month_days[c.month] + (c.month == 1 ? is_leap(c.year) : 0);
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
    static const char day_names[] = "MonTueWedThuFriSatSun"; /* 0001-01-01 was a Monday */
    static const char month_names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

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
