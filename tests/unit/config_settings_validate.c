/* SPDX-License-Identifier: BSD-3-Clause */
/* Valid and invalid configurations, and the messages for the invalid ones. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "config/settings_validate.h"

#define NO_ADDR                                                                                    \
    "expected an address with its prefix, e.g. 198.18.0.2/24 or 2001:db8::2/64, or auto6"
#define NO_HOST  "not an address a host can have on that link"
#define NO_GW    "expected an address, e.g. 198.18.0.1 or 2001:db8::1"
#define NOT_NEAR "that is not a neighbour of any --addr"

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
    {"198.18.0.2/24", "198.18.1.1", "--gateway 198.18.1.1: " NOT_NEAR},
    {"198.18.0.2/24", "198.18.0.2", "--gateway 198.18.0.2: that is our own address"},
    {"198.18.0.2/24", "198.18.0.255", "--gateway 198.18.0.255: " NOT_NEAR},
    {"198.18.0.2/24", "198.18.0.0", "--gateway 198.18.0.0: " NOT_NEAR},
    {"198.18.0.2/32", "198.18.0.1", "--gateway 198.18.0.1: " NOT_NEAR},
    {"2001:db8::2/64", NULL, NULL},
    {"fe80::2/64", NULL, NULL},
    {"2001:db8::/127", NULL, NULL}, /* RFC 6164 */
    {"2001:db8::2/128", "fe80::1", NULL},
    {"auto6", NULL, NULL},
    {"auto6", "fe80::1", NULL},
    {"2001:db8::2/64", "2001:db8::1", NULL},
    {"2001:db8::2", NULL, "--addr 2001:db8::2: " NO_ADDR},
    {"2001:db8::2/0", NULL, "--addr 2001:db8::2/0: " NO_ADDR},
    {"2001:db8::2/129", NULL, "--addr 2001:db8::2/129: " NO_ADDR},
    {"[2001:db8::2]/64", NULL, "--addr [2001:db8::2]/64: " NO_ADDR},
    {"2001:db8::2%nj0/64", NULL, "--addr 2001:db8::2%nj0/64: " NO_ADDR},
    {"::ffff:198.18.0.2/96", NULL, "--addr ::ffff:198.18.0.2/96: " NO_ADDR},
    {"auto", NULL, "--addr auto: " NO_ADDR},
    {"2001:db8::/64", NULL, "--addr 2001:db8::/64: " NO_HOST},
    {"ff02::1/64", NULL, "--addr ff02::1/64: " NO_HOST},
    {"::1/128", NULL, "--addr ::1/128: " NO_HOST},
    {"::/128", NULL, "--addr ::/128: " NO_HOST},
    {"2001:db8::2/64", "2001:db8:0:1::1", "--gateway 2001:db8:0:1::1: " NOT_NEAR},
    {"2001:db8::2/64", "2001:db8::2", "--gateway 2001:db8::2: that is our own address"},
    {"2001:db8::2/64", "2001:db8::", "--gateway 2001:db8::: " NOT_NEAR},
    {"2001:db8::2/64", "198.18.0.1", "--gateway 198.18.0.1: " NOT_NEAR},
    {"198.18.0.2/24", "fe80::1", "--gateway fe80::1: " NOT_NEAR},
    {"198.18.0.2/24", "2001:db8::1", "--gateway 2001:db8::1: " NOT_NEAR},
};

static struct nj_server_config good(void)
{
    struct nj_server_config c;
    nj_server_config_init(&c);
    c.addr[0] = "198.18.0.2/24";
    c.root = "/";
    return c;
}

static void expect(const struct nj_server_config *c, const char *why)
{
    struct nj_settings s;
    char said[256] = "";
    int rc = nj_settings_from_config(&s, c, said, sizeof said);
    cr_expect_eq(rc, why ? -1 : 0, "%s: %s", c->addr[0] ? c->addr[0] : "-", said);
    cr_expect_str_eq(said, why ? why : "");
}

Test(config_settings_validate, addresses)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct nj_server_config c = good();
        c.addr[0] = rows[i].addr;
        c.gateway[0] = rows[i].gateway;
        expect(&c, rows[i].why);
    }
}

Test(config_settings_validate, what_was_read)
{
    struct nj_server_config c = good();
    struct nj_settings s;
    char why[256];
    cr_assert_eq(nj_settings_from_config(&s, &c, why, sizeof why), 0);
    cr_expect_eq(s.port[0].iface.n_addrs, 1);
    cr_expect_eq(nj_addr_to_v4(&s.port[0].iface.addr[0].ip), htonl(0xc6120002));
    cr_expect_eq(s.port[0].iface.addr[0].prefix_bits, 24);
    cr_expect(!s.port[0].iface.has_gateway && !s.port[0].iface.ip6 && !s.port[0].slaac);

    c.gateway[0] = "2001:db8::1";
    c.gateway[1] = "198.18.0.254";
    c.addr[1] = "2001:db8::2/64";
    c.addr[2] = "198.18.0.3/24";
    c.addr[3] = "auto6";
    cr_assert_eq(nj_settings_from_config(&s, &c, why, sizeof why), 0, "%s", why);
    cr_expect(s.port[0].iface.has_gateway && s.port[0].iface.has_gateway6 && s.port[0].iface.ip6 &&
              s.port[0].slaac);
    cr_expect_eq(nj_addr_to_v4(&s.port[0].iface.gateway), htonl(0xc61200fe));
    cr_expect_eq(s.port[0].iface.gateway6.b[15], 1);
    cr_assert_eq(s.port[0].iface.n_addrs, 3);
    cr_expect_eq(s.port[0].iface.addr[1].prefix_bits, 64);
    cr_expect_eq(s.port[0].iface.addr[1].ip.b[0], 0x20);
    cr_expect_eq(nj_addr_to_v4(&s.port[0].iface.addr[2].ip), htonl(0xc6120003));
}

#define NO_ROUTE "expected a network and a router of the same family, e.g. 10.0.0.0/8=198.18.0.9"

Test(config_settings_validate, static_routes)
{
    static const struct {
        const char *route, *why;
    } bad[] = {
        {"10.0.0.0/8", "--route 10.0.0.0/8: " NO_ROUTE},
        {"10.0.0.0=198.18.0.9", "--route 10.0.0.0=198.18.0.9: " NO_ROUTE},
        {"10.0.0.1/8=198.18.0.9", "--route 10.0.0.1/8=198.18.0.9: " NO_ROUTE},
        {"0.0.0.0/0=198.18.0.9", "--route 0.0.0.0/0=198.18.0.9: " NO_ROUTE},
        {"10.0.0.0/8=", "--route 10.0.0.0/8=: " NO_ROUTE},
        {"10.0.0.0/8=198.18.0.9/24", "--route 10.0.0.0/8=198.18.0.9/24: " NO_ROUTE},
        {"2001:db8:7::/64=198.18.0.9", "--route 2001:db8:7::/64=198.18.0.9: " NO_ROUTE},
        {"10.0.0.0/8=198.18.1.9",
         "--route 10.0.0.0/8=198.18.1.9: the router is not a neighbour of any --addr"},
        {"10.0.0.0/8=198.18.0.2", "--route 10.0.0.0/8=198.18.0.2: the router is our own address"},
    };
    struct nj_server_config c = good();
    struct nj_settings s;
    char why[256];

    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        c.route[0] = bad[i].route;
        expect(&c, bad[i].why);
    }
    c.addr[1] = "2001:db8::2/64";
    c.route[0] = "10.0.0.0/8=198.18.0.9";
    c.route[1] = "2001:db8:7::/64=fe80::9";
    cr_assert_eq(nj_settings_from_config(&s, &c, why, sizeof why), 0, "%s", why);
    cr_assert_eq(s.port[0].iface.n_routes, 2);
    cr_expect_eq(s.port[0].iface.route[0].bits, 96 + 8);
    cr_expect_eq(nj_addr_to_v4(&s.port[0].iface.route[0].net), htonl(0x0a000000));
    cr_expect_eq(nj_addr_to_v4(&s.port[0].iface.route[0].hop), htonl(0xc6120009));
    cr_expect_eq(s.port[0].iface.route[1].bits, 64);
    c.route[1] = "10.0.0.0/8=198.18.0.10";
    expect(&c, "--route 10.0.0.0/8=198.18.0.10: there is another one for that network");
}

Test(config_settings_validate, several)
{
    struct nj_server_config c = good();
    c.addr[1] = "2001:db8::2/64";
    c.addr[2] = "198.18.0.2/16";
    expect(&c, "--addr 198.18.0.2/16: that address is given twice");
    c.addr[2] = NULL;
    c.gateway[0] = "198.18.0.1";
    c.gateway[1] = "198.18.0.9";
    expect(&c, "--gateway 198.18.0.9: there is another one for IPv4");
    c.gateway[0] = "fe80::1";
    c.gateway[1] = "2001:db8::1";
    expect(&c, "--gateway 2001:db8::1: there is another one for IPv6");
}

#define NO_MAC                                                                                     \
    "expected an address and the MAC address of a host, e.g. 198.18.0.1=02:00:00:00:00:01"

Test(config_settings_validate, neighbours)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"198.18.0.1", NO_MAC},
        {"198.18.0.1=", NO_MAC},
        {"=02:00:00:00:00:01", NO_MAC},
        {"198.18.0=02:00:00:00:00:01", NO_MAC},
        {"198.18.0.1=02:00:00:00:01", NO_MAC},
        {"198.18.0.1=02:00:00:00:00:01 ", NO_MAC},
        {"198.18.0.1=02:00:00:00:00:0g", NO_MAC},
        {"198.18.0.1=0200.0000.0001", NO_MAC},
        {"198.18.0.1=00:00:00:00:00:00", NO_MAC},
        {"198.18.0.1=03:00:00:00:00:01", NO_MAC},
        {"198.18.0.1=ff:ff:ff:ff:ff:ff", NO_MAC},
        {"198.18.1.1=02:00:00:00:00:01", NOT_NEAR},
        {"198.18.0.2=02:00:00:00:00:01", "that is our own address"},
        {"fe80::1=02:00:00:00:00:01", NOT_NEAR},
    };
    struct nj_server_config c = good();
    struct nj_settings s;
    char why[256];

    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        c.neighbour[0] = bad[i].text;
        snprintf(why, sizeof why, "--neighbour %s: %s", bad[i].text, bad[i].why);
        expect(&c, why);
    }
    c.neighbour[0] = "198.18.0.1=02:00:00:00:00:0A";
    c.neighbour[1] = "198.18.0.1=02:00:00:00:00:0b";
    expect(&c, "--neighbour 198.18.0.1=02:00:00:00:00:0b: that neighbour is given twice");
    c.addr[1] = "2001:db8::2/64";
    c.neighbour[1] = "fe80::1=02:00:00:00:00:0b";
    cr_assert_eq(nj_settings_from_config(&s, &c, why, sizeof why), 0, "%s", why);
    cr_assert_eq(s.port[0].iface.n_fixed, 2);
    cr_expect_eq(nj_addr_to_v4(&s.port[0].iface.fixed[0].ip), htonl(0xc6120001));
    cr_expect_eq(s.port[0].iface.fixed[0].mac.addr_bytes[5], 0xa);
    cr_expect_eq(s.port[0].iface.fixed[1].ip.b[0], 0xfe);
    cr_expect_eq(s.port[0].iface.fixed[1].mac.addr_bytes[5], 0xb);
    nj_settings_free(&s);
}

Test(config_settings_validate, the_path_of_the_upgrade_socket)
{
    struct nj_server_config c = good();
    char path[120], why[256];

    memset(path, 'x', sizeof path);
    path[108] = '\0';
    c.upgrade_socket = path;
    snprintf(why, sizeof why, "--upgrade-socket %s: expected a path of 1 to 107 bytes", path);
    expect(&c, why);
    path[107] = '\0';
    expect(&c, NULL);
    c.upgrade_socket = "";
    expect(&c, "--upgrade-socket : expected a path of 1 to 107 bytes");
    c.upgrade_socket = "//upgrade";
    expect(&c, "--upgrade-socket //upgrade: it would be in /: name a folder that the server's user "
               "may write to, e.g. /run/nightjar/upgrade");
    c.upgrade_socket = "/run/upgrade";
    expect(&c, NULL);
}

#define NO_PORT "expected a DPDK port number, or one with the lcores that poll it, e.g. 1 or 1=4-7"

Test(config_settings_validate, ports_that_are_wrong)
{
    static const struct {
        const char *first, *second, *why;
    } bad[] = {
        {"-1", NULL, "--port -1: " NO_PORT},
        {"", NULL, "--port : " NO_PORT},
        {"65536", NULL, "--port 65536: " NO_PORT},
        {"99999999", NULL, "--port 99999999: " NO_PORT},
        {"one", NULL, "--port one: " NO_PORT},
        {"0=", NULL, "--port 0=: " NO_PORT},
        {"0=7-4", NULL, "--port 0=7-4: " NO_PORT},
        {"0=4x", NULL, "--port 0=4x: " NO_PORT},
        {"0", "0=3", "--port 0=3: that port is given twice"},
        {"0=1-4", "1=4-7", "--port 1=4-7: port 0 has some of these lcores already"},
        {"3", "1", "--port 1 has no address: give it one with --addr ADDRESS/PREFIX@1"},
    };
    struct nj_server_config c = good();

    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        c.port[0] = bad[i].first;
        c.port[1] = bad[i].second;
        expect(&c, bad[i].why);
    }
}

/* Two ports whose links have different IPv4 networks, and share fe80::/10. */
static struct nj_server_config two_ports(void)
{
    struct nj_server_config c = good();

    c.port[0] = "4";
    c.port[1] = "2=3,6-7";
    c.addr[1] = "2001:db8::2/64";
    c.addr[2] = "198.18.1.2/24@2";
    c.addr[3] = "2001:db8:1::2/64@2";
    return c;
}

Test(config_settings_validate, several_ports)
{
    struct nj_server_config c = two_ports();
    struct nj_settings s;
    char why[256];

    c.gateway[0] = "198.18.1.1";
    c.gateway[1] = "fe80::1@4";
    c.gateway[2] = "198.18.0.1";
    c.route[0] = "10.0.0.0/8=198.18.1.9@2";
    c.neighbour[0] = "198.18.1.1=02:00:00:00:00:0a";
    c.vlan[0] = "7@4";
    c.vlan[1] = "8@2";
    cr_assert_eq(nj_settings_from_config(&s, &c, why, sizeof why), 0, "%s", why);
    const struct nj_settings_port *a = &s.port[0], *b = &s.port[1];
    cr_assert_eq(s.n_ports, 2);
    cr_expect(a->id == 4 && CPU_COUNT(&a->lcores) == 0);
    cr_expect(b->id == 2 && CPU_COUNT(&b->lcores) == 3 && CPU_ISSET(3, &b->lcores));
    cr_expect(a->iface.n_addrs == 2 && b->iface.n_addrs == 2 && a->iface.ip6 && b->iface.ip6);
    cr_expect_eq(nj_addr_to_v4(&b->iface.addr[0].ip), htonl(0xc6120102));
    cr_expect(a->iface.has_gateway && a->iface.has_gateway6 && b->iface.has_gateway);
    cr_expect(!b->iface.has_gateway6);
    cr_expect_eq(nj_addr_to_v4(&b->iface.gateway), htonl(0xc6120101));
    cr_expect(a->iface.n_routes == 0 && b->iface.n_routes == 1);
    cr_expect(a->iface.n_fixed == 0 && b->iface.n_fixed == 1);
    cr_expect(a->iface.vlan == 7 && b->iface.vlan == 8);
    nj_settings_free(&s);

    c = two_ports();
    c.vlan[0] = "9";
    cr_assert_eq(nj_settings_from_config(&s, &c, why, sizeof why), 0, "%s", why);
    cr_expect(s.port[0].iface.vlan == 9 && s.port[1].iface.vlan == 9);
    nj_settings_free(&s);
}

Test(config_settings_validate, which_port)
{
    static const struct {
        const char *addr, *gateway, *vlan, *why;
    } bad[] = {
        {"198.18.2.2/24@3", NULL, NULL, "--addr 198.18.2.2/24@3: there is no --port 3"},
        {"198.18.2.2/24@", NULL, NULL, "--addr 198.18.2.2/24@: there is no --port "},
        {"198.18.2.2/24@2x", NULL, NULL, "--addr 198.18.2.2/24@2x: there is no --port 2x"},
        {"198.18.0.2/24@2", NULL, NULL, "--addr 198.18.0.2/24@2: that address is given twice"},
        {NULL, "198.18.1.1@4", NULL,
         "--gateway 198.18.1.1@4: that is not a neighbour of any --addr of that port"},
        {NULL, "198.18.1.2", NULL, "--gateway 198.18.1.2: that is our own address"},
        {NULL, "fe80::1", NULL,
         "--gateway fe80::1: that is on the links of ports 4 and 2: choose one with @4 or @2"},
        {NULL, NULL, "0", "--vlan 0: expected a VLAN id from 1 to 4094"},
        {NULL, NULL, "4095@2", "--vlan 4095@2: expected a VLAN id from 1 to 4094"},
        {NULL, NULL, "none", "--vlan none: expected a VLAN id from 1 to 4094"},
    };
    struct nj_server_config c;

    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        c = two_ports();
        c.addr[4] = bad[i].addr;
        c.gateway[0] = bad[i].gateway;
        c.vlan[0] = bad[i].vlan;
        expect(&c, bad[i].why);
    }
    c = two_ports();
    c.vlan[0] = "7";
    c.vlan[1] = "8@2";
    expect(&c, "--vlan 8@2: the port is in VLAN 7 already");
    c = good();
    c.addr[0] = "198.18.0.2/24@0";
    expect(&c, "--addr 198.18.0.2/24@0: there is no --port 0");
}

/* The message does not repeat the key, because logs would keep it. */
Test(config_settings_validate, rss_key)
{
    static const char key[] = "6d5a6d5a6d5a6d5a6d5a6d5a6d5a6d5a6d5a6d5a"
                              "6d5a6d5a6d5a6d5a6d5a6d5a6d5a6d5a6d5a6d5a";
    struct nj_server_config c = good();
    struct nj_settings s;
    char why[256];

    c.rss_key = key + 1;
    expect(&c, "--rss-key: expected 80 hexadecimal digits, not all of them 0");
    c.rss_key = NULL;
    cr_assert_eq(nj_settings_from_config(&s, &c, why, sizeof why), 0);
    cr_expect(!s.has_rss_key);
    c.rss_key = key;
    cr_assert_eq(nj_settings_from_config(&s, &c, why, sizeof why), 0);
    cr_expect(s.has_rss_key && s.rss_key.b[39] == 0x5a);
}

Test(config_settings_validate, the_rest)
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
    c.mtu = 1000;
    expect(&c, "--mtu: expected a number of bytes from 1280 to 9000");
    c.mtu = 9000;
    c.rx_ring = 32;
    expect(&c, "--rx-ring: expected a number of descriptors from 64 to 8192");
    c = good();
    c.tx_ring = 8193;
    expect(&c, "--tx-ring: expected a number of descriptors from 64 to 8192");
    c = good();
    c.conns_max = 0;
    expect(&c, "--max-connections: expected a number from 1 to 16777216");
    c.conns_max = (1u << 24) + 1;
    expect(&c, "--max-connections: expected a number from 1 to 16777216");
    c.conns_max = 1u << 24;
    expect(&c, NULL);
}

Test(config_settings_validate, proxy_protocol)
{
    static const char *const wrong[] = {"81", "443", "0", "", "x", "-1", "65616", "80,443"};
    struct nj_server_config c = good();
    struct nj_settings s;
    char said[256], want[256];

    c.proxy_protocol[0] = "80";
    expect(&c, "--proxy-protocol needs --trusted-proxy NETWORK, or trusted_proxy in [client] of "
               "the configuration file: only these may connect to that port");
    c.trusted_proxy[0] = "10.0.0.0/8";
    cr_assert_eq(nj_settings_from_config(&s, &c, said, sizeof said), 0, "%s", said);
    cr_expect(s.listeners.n == 1 && s.listeners.at[0].port == 80 && s.listeners.at[0].has_proxy);
    nj_settings_free(&s);
    for (size_t i = 0; i < NJ_ARRAY_LEN(wrong); i++) {
        c.proxy_protocol[0] = wrong[i];
        snprintf(want, sizeof want,
                 "--proxy-protocol %s: expected a port that the server listens on, that of "
                 "--listen",
                 wrong[i]);
        expect(&c, want);
    }
    c.proxy_protocol[0] = c.proxy_protocol[1] = "80";
    expect(&c, "--proxy-protocol 80: that port is given twice");
    c.tls_cert[0] = c.tls_key[0] = "a.pem";
    c.proxy_protocol[1] = "443";
    cr_assert_eq(nj_settings_from_config(&s, &c, said, sizeof said), 0, "%s", said);
    cr_expect(s.listeners.n == 2 && s.listeners.at[1].port == 443 && s.listeners.at[1].is_tls &&
              s.listeners.at[0].has_proxy && s.listeners.at[1].has_proxy);
    nj_settings_free(&s);
    c.proxy_protocol[1] = "444";
    expect(&c, "--proxy-protocol 444: expected a port that the server listens on, that of --listen "
               "or --tls-port");
}

Test(config_settings_validate, http1_is_refused)
{
    struct nj_server_config c = good();
    struct nj_settings s;
    char said[256];

    for (unsigned i = 0; i < 2; i++) {
        c.no_http1 = i == 1;
        cr_assert_eq(nj_settings_from_config(&s, &c, said, sizeof said), 0, "%s", said);
        cr_expect_eq(s.http.no_http1, c.no_http1);
        nj_settings_free(&s);
    }
}

static void handle(struct nj_request *req, struct nj_response *resp, void *arg)
{
}

Test(config_settings_validate, handlers)
{
    static const struct nj_route ok[] = {{.path = "/a", .handle = handle}};
    static const struct nj_route bad[] = {{.path = "a b", .handle = handle}};
    struct nj_server_config c = good();
    struct nj_settings s;
    char why[256];

    c.fibers_max = 0;
    expect(&c, "--fibers: expected a number from 1 to 16384");
    c.fibers_max = 16385;
    expect(&c, "--fibers: expected a number from 1 to 16384");
    c = good();
    c.strategy = (enum nj_run)7;
    expect(&c, "--strategy: expected ewyk, pc or pec");
    c = good();
    c.root = NULL;
    c.routes = bad;
    c.n_routes = 1;
    cr_expect_eq(nj_settings_from_config(&s, &c, why, sizeof why), -1);
    cr_expect(strstr(why, "route 0, a b: expected a path"), "%s", why);
    c.routes = ok;
    cr_assert_eq(nj_settings_from_config(&s, &c, why, sizeof why), 0, "handlers alone will do: %s",
                 why);
    cr_expect_eq(nj_routes_count(s.routes), 1);
    nj_settings_free(&s);
}

Test(config_settings_validate, times)
{
    static const double bad[] = {0, 0.09, 86401, -1, NAN, INFINITY};
    for (size_t i = 0; i < NJ_ARRAY_LEN(bad); i++) {
        struct nj_server_config c = good();
        c.preface_timeout_s = bad[i];
        expect(&c, "--preface-timeout: expected a time such as 500ms or 10s, 100ms to 24h");
        c = good();
        c.idle_timeout_s = bad[i];
        expect(&c, "--idle-timeout: expected a time such as 500ms or 10s, 100ms to 24h");
    }
    struct nj_server_config c = good();
    c.preface_timeout_s = 0.1;
    c.idle_timeout_s = 86400;
    expect(&c, NULL);
}

/* A long line is cut, not written past its place. */
Test(config_settings_validate, short_buffer)
{
    struct nj_server_config c = good();
    struct nj_settings s;
    char why[12] = "";
    c.addr[0] = "a very long word that is no address";
    cr_expect_eq(nj_settings_from_config(&s, &c, why, sizeof why), -1);
    cr_expect_str_eq(why, "--addr a ve");
}
