#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# CA URL NAME...: fetches all names on one connection of HTTP::Tiny, which is Perl's own. Prints NAME
# SHA256 PROTOCOL of each.
use strict;
use warnings;
use Digest::SHA qw(sha256_hex);
use HTTP::Tiny;

my ($ca, $url, @names) = @ARGV;
my $client = HTTP::Tiny->new(verify_SSL => 1, SSL_options => {SSL_ca_file => $ca});
for my $name (@names) {
    my $response = $client->get($url . $name);
    die "$name: $response->{status} $response->{content}\n" unless $response->{success};
    printf "%s %s %s\n", $name, sha256_hex($response->{content}), $response->{protocol};
}
