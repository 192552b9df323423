/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time zone of the process, which hours of classes and the access log in the format `combined`
 * use. glibc takes UTC without a word for a TZ that it does not know (tzset(3)).
 */
#pragma once

#include <stdbool.h>
#include <time.h>

#include "config/ini_file_diagnostics.h"

#define NJ_TIME_ZONE_NAME_BYTES 201u
#define NJ_TIME_ZONE_TEXT_BYTES 320u

/* Is this value of TZ a file in `folder` (absolute: that file) in the format of RFC 8536, or a rule
 * of POSIX such as CET-1CEST? May block. */
bool nj_time_zone_is_known(const char *tz, const char *folder);

/* Is this a link, as /etc/localtime is, that leads to no time zone? Not if there is no link, or if
 * its target is UTC: then the zone is UTC by intent. May block. */
bool nj_time_zone_is_broken_link(const char *link);

/* Adds a line if TZ, or /etc/localtime without TZ, leads to no time zone. Any thread. */
void nj_time_zone_warn(struct nj_diags *warnings);

/* Writes the name of the zone, e.g. "Europe/Berlin"; "UTC" if there is no such zone. Cut. Opens its
 * file, which Landlock may refuse later: at the start of a server. May block. */
void nj_time_zone_name(char name[NJ_TIME_ZONE_NAME_BYTES]);
/* Writes the zone `name` of the process and its offset at `now`, e.g. "Europe/Berlin (now CET,
 * UTC+0100)". Any thread. */
void nj_time_zone_format(const char *name, time_t now, char text[NJ_TIME_ZONE_TEXT_BYTES]);
