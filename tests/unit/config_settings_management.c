/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "config/settings_validate.h"

Test(config_settings_management, addresses)
{
    static const struct {
        const char *text;
        uint16_t port; /* 0: it is refused */
        bool is_loopback;
    } of[] = {
        {"127.0.0.1:9180", 9180, true},
        {"127.1.2.3:1", 1, true},
        {"[::1]:65535", 65535, true},
        {"198.18.0.1:80", 80, false},
        {"0.0.0.0:80", 80, false},
        {"[2001:db8::1]:80", 80, false},
        {"[::]:80", 80, false},
        {"128.0.0.1:80", 80, false},
        {"", 0, false},
        {":80", 0, false},
        {"80", 0, false},
        {"127.0.0.1", 0, false},
        {"127.0.0.1:", 0, false},
        {"127.0.0.1:0", 0, false},
        {"127.0.0.1:65536", 0, false},
        {"127.0.0.1:80x", 0, false},
        {"127.0.0.1:-1", 0, false},
        {"[127.0.0.1]:80", 0, false},
        {"::1:80", 0, false},
        {"[::1]", 0, false},
        {"[]:80", 0, false},
        {"[::ffff:127.0.0.1]:80", 0, false},
        {"localhost:80", 0, false},
    };

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct nj_management_address a = {.port = 0};
        cr_expect_eq(nj_management_address_parse(of[i].text, &a), of[i].port > 0, "%s", of[i].text);
        if (of[i].port == 0)
            continue;
        cr_expect_eq(a.port, of[i].port, "%s", of[i].text);
        cr_expect_eq(a.is_loopback, of[i].is_loopback, "%s", of[i].text);
    }
}

static void expect(const struct nj_server_config *c, const char *part)
{
    struct nj_settings s;
    char why[512] = "";
    int rc = nj_settings_from_config(&s, c, why, sizeof why);

    cr_expect_eq(rc == 0, part == NULL, "%s", why);
    if (part)
        cr_expect(strstr(why, part), "%s", why);
    nj_settings_free(&s);
}

static struct nj_server_config good(void)
{
    struct nj_server_config c;

    nj_server_config_init(&c);
    c.addr[0] = "198.18.0.2/24";
    c.root = "/";
    return c;
}

Test(config_settings_management, the_path_of_the_socket)
{
    struct nj_server_config c = good();
    char path[120] = "/run/";

    cr_expect_null(nj_settings_management_socket(&c));
    c.management_default = true;
    cr_expect_str_eq(nj_settings_management_socket(&c), "/run/nightjar/nightjar.sock");
    c.management_socket = "none";
    cr_expect_null(nj_settings_management_socket(&c));
    expect(&c, NULL);
    for (size_t n = strlen(path); n < 104; n++)
        path[n] = 'x';
    c.management_socket = path;
    expect(&c, "expected none, or a path of 2 to 103 bytes");
    path[103] = '\0';
    expect(&c, NULL);
    c.management_socket = "relative";
    expect(&c, "expected none, or a path of 2 to 103 bytes");
    c.management_socket = "";
    expect(&c, "expected none, or a path of 2 to 103 bytes");
    c.management_socket = "/nightjar.sock";
    expect(&c, "it would be in /: name a folder");
}

Test(config_settings_management, what_does_not_fit)
{
    struct nj_server_config c = good();

    c.management_listen[0] = "127.0.0.1";
    expect(&c, "--management-listen 127.0.0.1: expected an address and a port");
    c.management_listen[0] = "198.18.1.1:9180";
    expect(&c, NULL);
    c.management_token = "/etc/nightjar/token";
    expect(&c, "--management-token: tokens are for loopback addresses");
    c.management_token = NULL;
    c.management_read_token = "/etc/nightjar/token";
    expect(&c, "--management-read-token: tokens are for loopback addresses");
    c.management_listen[1] = "[::1]:9180";
    expect(&c, NULL);
    c.ready_stall_s = 0.001;
    expect(&c, "--ready-stall: expected");
}
