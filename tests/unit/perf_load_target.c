/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of a URL of nightjar-load. */
#include <arpa/inet.h>
#include <string.h>

#include <criterion/criterion.h>

#include "target.h"

static struct load_options o;
static const char *path;
static char why[256];

static int read_url(const char *url)
{
    o = (struct load_options){.n_to = 0};
    why[0] = '\0';
    return load_target_read(&o, url, &path, why, sizeof why);
}

/* Checks a URL with an address, which is not looked up. */
static void check_address(const char *url, const char *address, uint16_t port,
                          const char *authority, const char *rest)
{
    char text[INET6_ADDRSTRLEN];

    cr_assert_eq(read_url(url), 0, "%s", why);
    cr_assert_eq(load_target_look_up(&o, why, sizeof why), 0);
    cr_assert_eq(o.n_to, 1);
    cr_assert_null(o.server_name);
    inet_ntop(AF_INET6, o.to[0].b, text, sizeof text);
    cr_assert_str_eq(text, address);
    cr_assert_eq(o.port, port);
    cr_assert_str_eq(o.authority, authority);
    cr_assert_str_eq(path, rest);
}

Test(load_target, addresses)
{
    check_address("http://198.18.0.2", "::ffff:198.18.0.2", 80, "198.18.0.2", "/");
    check_address("https://198.18.0.2:8443/a?b=1:2", "::ffff:198.18.0.2", 8443, "198.18.0.2:8443",
                  "/a?b=1:2");
    cr_assert(o.plan.is_https);
    check_address("http://[2001:db8::2]/", "2001:db8::2", 80, "[2001:db8::2]", "/");
    check_address("https://[2001:db8::2]:1/x", "2001:db8::2", 1, "[2001:db8::2]:1", "/x");
}

Test(load_target, names)
{
    cr_assert_eq(read_url("http://a-b.example.org:81/x"), 0);
    cr_assert_str_eq(o.server_name, "a-b.example.org");
    cr_assert_str_eq(o.authority, "a-b.example.org:81");
    cr_assert_eq(o.n_to, 0, "it is looked up later");
    cr_assert_eq(read_url("http://localhost/"), 0);
    cr_assert_eq(load_target_look_up(&o, why, sizeof why), 0, "%s", why);
    cr_assert_gt(o.n_to, 0);
    cr_assert_leq(o.n_to, LOAD_TO_MAX);
    char url[128] = "http://";
    memset(url + strlen(url), 'a', 64); /* a label has at most 63: no server is asked */
    cr_assert_eq(read_url(url), 0);
    cr_assert_eq(load_target_look_up(&o, why, sizeof why), -1);
    cr_assert_eq(strncmp(why, "aaaa", 4), 0, "%s", why);
}

Test(load_target, wrong)
{
    static const char *const urls[][2] = {
        {"example.org", "expected http://"},
        {"ftp://example.org/", "expected http://"},
        {"http://", "expected a name or an address"},
        {"http:///x", "expected a name or an address"},
        {"http://:80/", "expected a name or an address"},
        {"http://me@example.org/", "expected a name or an address"},
        {"http://2001:db8::2/", "expected a name or an address"},
        {"http://[2001:db8::2/", "expected a name or an address"},
        {"http://[]/", "expected a name or an address"},
        {"http://example.org:/", "a port from 1"},
        {"http://example.org:0/", "a port from 1"},
        {"http://example.org:65536/", "a port from 1"},
        {"http://example.org:80x/", "a port from 1"},
    };
    char url[300] = "http://";

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        cr_assert_eq(read_url(urls[i][0]), -1, "%s", urls[i][0]);
        cr_assert_not_null(strstr(why, urls[i][1]), "%s: %s", urls[i][0], why);
    }
    memset(url + strlen(url), 'a', 256); /* a name has at most 255 */
    cr_assert_eq(read_url(url), -1);
}
