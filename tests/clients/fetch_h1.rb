# SPDX-License-Identifier: BSD-3-Clause
# CA URL NAME...: fetches all names on one connection of Net::HTTP. Prints NAME SHA256 PROTOCOL of
# each.
require 'digest'
require 'net/http'

ca, url, *names = ARGV
uri = URI(url)
options = uri.scheme == 'https' ? { use_ssl: true, ca_file: ca } : {}
Net::HTTP.start(uri.host, uri.port, **options) do |http|
  names.each do |name|
    response = http.request(Net::HTTP::Get.new(uri.path + name, 'Accept-Encoding' => 'identity'))
    raise "#{name}: #{response.code}" unless response.code == '200'

    puts "#{name} #{Digest::SHA256.hexdigest(response.body)} HTTP/#{response.http_version}"
  end
end
