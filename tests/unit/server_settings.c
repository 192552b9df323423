/* SPDX-License-Identifier: BSD-3-Clause */
/* Configurations good and bad, and what is said of the bad ones. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "server/settings.h"

#define NO_ADDR "expected an IPv4 address with its prefix, e.g. 198.18.0.2/24"
#define NO_HOST "not an address a host can have on that link"
#define NO_GW   "expected an IPv4 address, e.g. 198.18.0.1"

/* `why` NULL: good. */
static const struct {
    const char *addr, *gateway, *why;
} rows[] = {
    {"198.18.0.2/24", NULL, NULL},
    {"198.18.0.2/24", "198.18.0.1", NULL},
    {"10.0.0.0/31", "10.0.0.1", NULL},
    {"10.0.0.1/32", NULL, NULL},
    {"10.255.255.254/8", "10.0.0.1", NULL},
    {"129.0.0.1/1", NULL, NULL},
    {NULL, NULL, "--addr is missing: give our address on the link, e.g. --addr 198.18.0.2/24"},
    {"", NULL, "--addr : " NO_ADDR},
    {"/24", NULL, "--addr /24: " NO_ADDR},
    {"198.18.0.2", NULL, "--addr 198.18.0.2: " NO_ADDR},
    {"198.18.0.2/", NULL, "--addr 198.18.0.2/: " NO_ADDR},
    {"198.18.0.2/0", NULL, "--addr 198.18.0.2/0: " NO_ADDR},
    {"198.18.0.2/33", NULL, "--addr 198.18.0.2/33: " NO_ADDR},
    {"198.18.0.2/-1", NULL, "--addr 198.18.0.2/-1: " NO_ADDR},
    {"198.18.0.2/+24", NULL, "--addr 198.18.0.2/+24: " NO_ADDR},
    {"198.18.0.2/ 24", NULL, "--addr 198.18.0.2/ 24: " NO_ADDR},
    {"198.18.0.2/24x", NULL, "--addr 198.18.0.2/24x: " NO_ADDR},
    {"198.18.0.2/24/8", NULL, "--addr 198.18.0.2/24/8: " NO_ADDR},
    {"198.18.0.2/99999999999999999999", NULL, "--addr 198.18.0.2/99999999999999999999: " NO_ADDR},
    {"198.18.0/24", NULL, "--addr 198.18.0/24: " NO_ADDR},
    {"198.18.0.256/24", NULL, "--addr 198.18.0.256/24: " NO_ADDR},
    {" 198.18.0.2/24", NULL, "--addr  198.18.0.2/24: " NO_ADDR},
    {"fe80::1/64", NULL, "--addr fe80::1/64: " NO_ADDR},
    {"198.198.198.198.198.198/24", NULL, "--addr 198.198.198.198.198.198/24: " NO_ADDR},
    {"198.18.0.0/24", NULL, "--addr 198.18.0.0/24: " NO_HOST},
    {"198.18.0.255/24", NULL, "--addr 198.18.0.255/24: " NO_HOST},
    {"0.0.0.1/8", NULL, "--addr 0.0.0.1/8: " NO_HOST},
    {"127.0.0.1/8", NULL, "--addr 127.0.0.1/8: " NO_HOST},
    {"224.0.0.1/24", NULL, "--addr 224.0.0.1/24: " NO_HOST},
    {"255.255.255.255/32", NULL, "--addr 255.255.255.255/32: " NO_HOST},
    {"198.18.0.2/24", "", "--gateway : " NO_GW},
    {"198.18.0.2/24", "198.18.0.1/24", "--gateway 198.18.0.1/24: " NO_GW},
    {"198.18.0.2/24", "router", "--gateway router: " NO_GW},
    {"198.18.0.2/24", "198.18.1.1",
     "--gateway 198.18.1.1: not a neighbour of --addr 198.18.0.2/24"},
    {"198.18.0.2/24", "198.18.0.2",
     "--gateway 198.18.0.2: not a neighbour of --addr 198.18.0.2/24"},
    {"198.18.0.2/24", "198.18.0.255",
     "--gateway 198.18.0.255: not a neighbour of --addr 198.18.0.2/24"},
    {"198.18.0.2/24", "198.18.0.0",
     "--gateway 198.18.0.0: not a neighbour of --addr 198.18.0.2/24"},
    {"198.18.0.2/32", "198.18.0.1",
     "--gateway 198.18.0.1: not a neighbour of --addr 198.18.0.2/32"},
};

static struct nj_server_config good(void)
{
    struct nj_server_config c;
    nj_server_config_init(&c);
    c.addr = "198.18.0.2/24";
    c.root = "/";
    return c;
}

static void expect(const struct nj_server_config *c, const char *why)
{
    struct nj_settings s;
    char said[256] = "";
    int rc = nj_settings_read(&s, c, said, sizeof said);
    cr_expect_eq(rc, why ? -1 : 0, "%s: %s", c->addr ? c->addr : "-", said);
    cr_expect_str_eq(said, why ? why : "");
}

Test(server_settings, addresses)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_server_config c = good();
        c.addr = rows[i].addr;
        c.gateway = rows[i].gateway;
        expect(&c, rows[i].why);
    }
}

Test(server_settings, what_was_read)
{
    struct nj_server_config c = good();
    struct nj_settings s;
    char why[256];
    cr_assert_eq(nj_settings_read(&s, &c, why, sizeof why), 0);
    cr_expect_eq(nj_addr_to_v4(&s.ip), htonl(0xc6120002));
    cr_expect_eq(s.prefix_bits, 24);
    cr_expect(!s.has_gateway);
    c.gateway = "198.18.0.254";
    cr_assert_eq(nj_settings_read(&s, &c, why, sizeof why), 0);
    cr_expect(s.has_gateway);
    cr_expect_eq(nj_addr_to_v4(&s.gateway), htonl(0xc61200fe));
}

Test(server_settings, the_rest)
{
    struct nj_server_config c = good();
    c.root = NULL;
    expect(&c, "--root is missing: give the folder to serve, e.g. --root /srv/www");
    c.root = "/nonexistent/folder";
    expect(&c, "--root /nonexistent/folder: No such file or directory");
    c.root = "/etc/passwd";
    expect(&c, "--root /etc/passwd: not a folder");
    c.root = "";
    expect(&c, "--root : No such file or directory");
    c = good();
    c.listen_port = 0;
    expect(&c, "--listen: expected a port from 1 to 65535");
    c = good();
    c.conns_max = 0;
    expect(&c, "--max-connections: expected 1 to 16777216");
    c.conns_max = (1u << 24) + 1;
    expect(&c, "--max-connections: expected 1 to 16777216");
    c.conns_max = 1u << 24;
    expect(&c, NULL);
}

/* A long line is cut, not written past its place. */
Test(server_settings, short_buffer)
{
    struct nj_server_config c = good();
    struct nj_settings s;
    char why[12] = "";
    c.addr = "a very long word that is no address";
    cr_expect_eq(nj_settings_read(&s, &c, why, sizeof why), -1);
    cr_expect_str_eq(why, "--addr a ve");
}
