#!/bin/sh
# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

# Makes the certificates of the tests of TLS with openssl, in the folder that its argument names:
#
#   ca, other-ca   two authorities; other/ has the second as a folder that OpenSSL searches
#   right          of a server at localhost, 127.0.0.1 and ::1
#   elsewhere      of a server with another name and another address
#   expired        as right, until yesterday
#   client         of a client; client-encrypted.key is its key with a password
#   stranger       of a client, by other-ca
set -e
mkdir -p "$1/other"
cd "$1"

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key"; }

authority() {
    key "$1"
    openssl req -x509 -new -key "$1.key" -subj "/CN=$1" -days 3650 -out "$1.pem"
}

# certificate NAME AUTHORITY NAMES [ARGUMENTS FOR openssl x509]
certificate() {
    name=$1 authority=$2 names=$3
    shift 3
    key "$name"
    openssl req -new -key "$name.key" -subj "/CN=$name" -out "$name.csr"
    printf 'subjectAltName=%s\n' "$names" >"$name.ext"
    openssl x509 -req -in "$name.csr" -CA "$authority.pem" -CAkey "$authority.key" \
        -CAcreateserial -extfile "$name.ext" "$@" -out "$name.pem"
}

authority ca
authority other-ca
cp other-ca.pem "other/$(openssl x509 -in other-ca.pem -noout -hash).0"
certificate right ca 'DNS:localhost,IP:127.0.0.1,IP:::1' -days 3650
certificate elsewhere ca 'DNS:redis.example,IP:192.0.2.1' -days 3650
certificate expired ca 'DNS:localhost' -days -1
certificate client ca 'DNS:client' -days 3650
certificate stranger other-ca 'DNS:stranger' -days 3650
openssl pkey -in client.key -aes256 -passout pass:secret -out client-encrypted.key
