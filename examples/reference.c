/* SPDX-License-Identifier: BSD-3-Clause */
/* GET /1GiB.bin: a file by reference. Lines of stdin, as class=iso,rate=10MiB/s, change limits. */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <nightjar/nightjar.h>
static struct stat file;

static void send_file(struct nj_request *req, struct nj_response *resp, void *bytes)
{
    (void)req;
    if (nj_response_class(resp, "iso") || nj_response_send(resp, bytes, file.st_size, NULL, NULL))
        nj_response_reset(resp);
}

int main(int argc, char **argv)
{
    struct nj_route route = {.path = "/1GiB.bin", .type = NJ_NON_BLOCKING, .handle = send_file};
    struct nj_server_config config;
    char why[512], change[128];
    int fd = open(argc > 2 ? argv[2] : "", O_RDONLY), all = MAP_SHARED | MAP_POPULATE;
    if (fd < 0 || fstat(fd, &file) != 0 ||
        (route.arg = mmap(NULL, file.st_size, PROT_READ, all, fd, 0)) == MAP_FAILED)
        err(2, "usage: reference ADDRESS/PREFIX FILE [EAL ARGUMENT...]");
    nj_server_config_init(&config);
    config.addr[0] = argv[1];
    config.policy_file = "iso.conf"; /* defines class iso */
    config.routes = &route;
    config.n_routes = 1;
    argv[2] = argv[0]; /* the EAL expects the name of the program before its arguments */
    struct nj_server *server = nj_server_new(argc - 2, argv + 2, &config, why, sizeof why);
    if (!server || nj_server_start(server, why, sizeof why) != 0)
        errx(1, "%s", why);
    while (scanf(" %127[^\n]", change) == 1)
        if (nj_server_change_limits(server, change, why, sizeof why) != 0)
            warnx("%s", why);
    return nj_server_free(server) == 0 ? 0 : 1; /* at the end of stdin */
}
