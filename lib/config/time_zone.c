/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks where glibc does: tzset(3). */
#include "config/time_zone.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_ZONE "/etc/localtime"
#define ZONES       "/usr/share/zoneinfo"
#define MAGIC       "TZif" /* RFC 8536 3.1 */
#define LETTERS     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static bool is_zone_file(const char *path)
{
    char magic[sizeof MAGIC - 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok = fd >= 0 && read(fd, magic, sizeof magic) == (ssize_t)sizeof magic &&
              memcmp(magic, MAGIC, sizeof magic) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

/* The name and the offset with which a rule of POSIX begins: CET-1, <+0330>-3:30. glibc ignores a
 * wrong rest. */
static bool is_posix_rule(const char *tz)
{
    bool is_quoted = tz[0] == '<';
    size_t n = is_quoted ? strcspn(tz, ">") : strspn(tz, LETTERS);

    if (n < (is_quoted ? 4 : 3) || (is_quoted && tz[n] != '>'))
        return false;
    n += is_quoted;
    n += tz[n] == '+' || tz[n] == '-';
    return isdigit((unsigned char)tz[n]);
}

bool nj_time_zone_is_known(const char *tz, const char *folder)
{
    char path[PATH_MAX];

    tz += tz[0] == ':';
    if (tz[0] == '\0' || strcmp(tz, "UTC") == 0 || strcmp(tz, "GMT") == 0) /* need no file */
        return true;
    int n = snprintf(path, sizeof path, "%s%s%s", tz[0] == '/' ? "" : folder,
                     tz[0] == '/' ? "" : "/", tz);
    return (n > 0 && (size_t)n < sizeof path && is_zone_file(path)) || is_posix_rule(tz);
}

static const char *zones_folder(void)
{
    const char *folder = getenv("TZDIR");

    return folder && folder[0] ? folder : ZONES;
}

/* The target of a link; empty if there is no such link. readlink(2) does not terminate it. */
static void read_target(const char *link, char target[PATH_MAX])
{
    ssize_t n = readlink(link, target, PATH_MAX - 1);

    target[n > 0 ? n : 0] = '\0';
}

bool nj_time_zone_is_broken_link(const char *link)
{
    char target[PATH_MAX];

    read_target(link, target);
    return target[0] && !is_zone_file(link) && !strstr(target, "/UTC");
}

void nj_time_zone_warn(struct nj_diags *warnings)
{
    static const char consequence[] =
        "UTC applies to hours of classes and to times in the access log";
    const char *tz = getenv("TZ");

    if (tz && !nj_time_zone_is_known(tz, zones_folder()))
        nj_diag_add(warnings, "TZ", 0,
                    "warning: %.200s: there is no such time zone in %.200s: %s: correct it, or "
                    "install tzdata",
                    tz, zones_folder(), consequence);
    else if (!tz && nj_time_zone_is_broken_link(SYSTEM_ZONE))
        nj_diag_add(warnings, SYSTEM_ZONE, 0,
                    "warning: it leads to no time zone: %s: correct it, or install tzdata",
                    consequence);
}

void nj_time_zone_name(char name[NJ_TIME_ZONE_NAME_BYTES])
{
    const char *tz = getenv("TZ"), *found = tz;
    char target[PATH_MAX];

    if (!tz) {
        read_target(SYSTEM_ZONE, target);
        char *at = strstr(target, "/zoneinfo/");
        found = at ? at + strlen("/zoneinfo/") : is_zone_file(SYSTEM_ZONE) ? SYSTEM_ZONE : "UTC";
    } else if (tz[0] == '\0' || !nj_time_zone_is_known(tz, zones_folder())) {
        found = "UTC";
    }
    snprintf(name, NJ_TIME_ZONE_NAME_BYTES, "%s", found);
}

void nj_time_zone_format(const char *name, time_t now, char text[NJ_TIME_ZONE_TEXT_BYTES])
{
    char offset[64] = "";
    struct tm tm;

    if (strcmp(name, "UTC") != 0 && localtime_r(&now, &tm))
        strftime(offset, sizeof offset, " (now %Z, UTC%z)", &tm);
    snprintf(text, NJ_TIME_ZONE_TEXT_BYTES, "%s%s", name, offset);
}
