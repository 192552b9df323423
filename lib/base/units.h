/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with units, as options and the file of --config write them. Independent of the locale.
 * Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NJ_RATE_MAX    ((uint64_t)1 << 40) /* bytes per second: 1 TiB/s */
#define NJ_BYTES_MAX   1e15                /* the largest size that nj_parse_bytes() accepts */
#define NJ_RATE_SYNTAX "a rate such as 20MiB/s, 200KiB/s or 100Mbit/s, from 1 to 1024GiB/s"

/* Parse all of `text`. False if it is malformed or out of range; *out is then undefined. */
bool nj_parse_seconds(const char *text, double *out);        /* 500ms, 10s, 10, 2m, 1h, 7d */
bool nj_parse_bytes(const char *text, uint64_t *out);        /* 64KiB, 1GiB, 100 */
bool nj_parse_rate(const char *text, uint64_t *out);         /* 20MiB/s, 100Mbit/s, 1000 */
bool nj_parse_decimal(const char *text, uint64_t *out);      /* decimal digits */
bool nj_parse_time_range(const char *text, uint16_t out[2]); /* 22:00-06:00, of the day */

/* Is it a number without a unit, and not 0? People write some for bytes, and others for MiB. */
bool nj_lacks_unit(const char *text);

/* Print. The functions above parse the result back to the same number. A rate is printed in bits if
 * that gives a smaller number: 800Mbit/s, not 100000000B/s. 24 bytes are enough. */
void nj_format_bytes(uint64_t n, char *text, size_t n_text);
void nj_format_rate(uint64_t bytes_per_s, char *text, size_t n_text);
void nj_format_seconds(double seconds, char *text, size_t n_text);
void nj_format_double(double number, char *text, size_t n_text); /* 0.5, 1e+15: up to 15 digits */
