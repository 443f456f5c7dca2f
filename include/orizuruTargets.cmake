# SPDX-License-Identifier: ISC
# Copyright (c) 2026 The Orizuru authors

# Defines orizuru::orizuru; where there is OpenSSL, orizuru::tls; where there are libpqxx and libpq,
# orizuru::postgres; where there is nlohmann/json, with CLI11 orizuru::cli and with Boost
# orizuru::web; where there is Asio, and the compiler has its coroutines, orizuru::asio: for the
# installed package, and for projects that have the sources in their tree.

cmake_policy(PUSH)
cmake_policy(VERSION 3.16...3.31)

# _orizuru_find(RESULT [MODULE M] [PACKAGE P] TARGETS T...): sets RESULT to the target of a library,
# or to nothing: to the first of T that the project has already, else to that of pkg-config's module
# M, else to the first of T that the CMake package P defines.
function(_orizuru_find result)
  cmake_parse_arguments(PARSE_ARGV 1 asked "" "MODULE;PACKAGE" "TARGETS")
  set(${result} "" PARENT_SCOPE)
  foreach(target IN LISTS asked_TARGETS)
    if(TARGET ${target})
      set(${result} ${target} PARENT_SCOPE)
      return()
    endif()
  endforeach()

  if(asked_MODULE)
    find_package(PkgConfig QUIET)
    if(PKG_CONFIG_FOUND)
      pkg_check_modules(${result} QUIET IMPORTED_TARGET ${asked_MODULE})
      if(TARGET PkgConfig::${result})
        set(${result} PkgConfig::${result} PARENT_SCOPE)
        return()
      endif()
    endif()
  endif()

  if(asked_PACKAGE)
    find_package(${asked_PACKAGE} QUIET)
    foreach(target IN LISTS asked_TARGETS)
      if(${asked_PACKAGE}_FOUND AND TARGET ${target})
        set(${result} ${target} PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endif()
endfunction()

# _orizuru_header(TARGET HEADER): adds the folder that has HEADER to TARGET, if there is one.
function(_orizuru_header target header)
  string(MAKE_C_IDENTIFIER "ORIZURU_FOLDER_OF_${header}" folder)
  find_path(${folder} ${header})
  mark_as_advanced(${folder})
  if(${folder})
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${${folder}}")
  endif()
endfunction()

# The times of zones: the standard library's, or those of date, which has to be linked then.
function(_orizuru_zones)
  include(CheckCXXSourceCompiles)
  set(CMAKE_CXX_STANDARD 20)
  set(CMAKE_REQUIRED_QUIET TRUE)
  check_cxx_source_compiles("
    #include <version>
    #if __cpp_lib_chrono < 201907L
    #error
    #endif
    int main() {}" ORIZURU_STANDARD_LIBRARY_HAS_ZONES)
  if(ORIZURU_STANDARD_LIBRARY_HAS_ZONES)
    return()
  endif()
  _orizuru_find(ORIZURU_DATE PACKAGE date TARGETS date::date-tz)
  if(NOT ORIZURU_DATE)
    find_library(ORIZURU_DATE_LIBRARY date-tz)
    mark_as_advanced(ORIZURU_DATE_LIBRARY)
    if(ORIZURU_DATE_LIBRARY)
      set(ORIZURU_DATE "${ORIZURU_DATE_LIBRARY}")
      _orizuru_header(orizuru::orizuru date/tz.h)
    endif()
  endif()
  if(ORIZURU_DATE)
    set_property(TARGET orizuru::orizuru APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${ORIZURU_DATE})
  endif()
endfunction()

# _orizuru_asio(RESULT): sets RESULT to true if the compiler finds Asio and has its coroutines.
function(_orizuru_asio result)
  include(CheckCXXSourceCompiles)
  set(CMAKE_CXX_STANDARD 20)
  set(CMAKE_REQUIRED_QUIET TRUE)
  find_path(ORIZURU_FOLDER_OF_asio_hpp asio.hpp)
  mark_as_advanced(ORIZURU_FOLDER_OF_asio_hpp)
  if(ORIZURU_FOLDER_OF_asio_hpp)
    set(CMAKE_REQUIRED_INCLUDES "${ORIZURU_FOLDER_OF_asio_hpp}")
  endif()
  check_cxx_source_compiles("
    #include <asio/awaitable.hpp>
    #include <asio/bind_cancellation_slot.hpp>
    asio::awaitable<void> f();
    int main() {}" ORIZURU_COMPILES_ASIO)
  set(${result} "${ORIZURU_COMPILES_ASIO}" PARENT_SCOPE)
  if(NOT ORIZURU_COMPILES_ASIO)
    unset(ORIZURU_COMPILES_ASIO CACHE) # it may be there when this runs again
  endif()
endfunction()

# orizuru_define_targets(FOLDER [GLOBAL]): FOLDER is the one with orizuru/. Without hiredis it
# defines nothing.
function(orizuru_define_targets folder)
  if(TARGET orizuru::orizuru)
    return()
  endif()
  set(scope ${ARGN})

  # hiredis' own package has a target only since 1.0, and another name for it since 1.1.
  _orizuru_find(ORIZURU_HIREDIS MODULE hiredis>=0.14 PACKAGE hiredis
                TARGETS hiredis::hiredis hiredis)
  if(NOT ORIZURU_HIREDIS)
    return()
  endif()
  _orizuru_find(ORIZURU_THREADS PACKAGE Threads TARGETS Threads::Threads)

  add_library(orizuru::orizuru INTERFACE IMPORTED ${scope})
  set_target_properties(orizuru::orizuru PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${folder}"
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_LINK_LIBRARIES "${ORIZURU_HIREDIS};${ORIZURU_THREADS}")

  # Before 6.0 its package demands Boost, which the headers can do without.
  _orizuru_find(ORIZURU_MSGPACK PACKAGE msgpack-cxx TARGETS msgpack-cxx msgpackc-cxx)
  if(ORIZURU_MSGPACK)
    set_property(TARGET orizuru::orizuru APPEND PROPERTY
                 INTERFACE_LINK_LIBRARIES ${ORIZURU_MSGPACK})
  else()
    _orizuru_header(orizuru::orizuru msgpack.hpp)
  endif()

  _orizuru_zones()

  _orizuru_find(ORIZURU_OPENSSL MODULE openssl>=1.1.1 TARGETS OpenSSL::SSL)
  if(ORIZURU_OPENSSL)
    add_library(orizuru::tls INTERFACE IMPORTED ${scope})
    set_target_properties(orizuru::tls PROPERTIES
      INTERFACE_LINK_LIBRARIES "orizuru::orizuru;${ORIZURU_OPENSSL}")
  endif()

  _orizuru_find(ORIZURU_PQXX MODULE libpqxx>=6.4 PACKAGE libpqxx
                TARGETS libpqxx::pqxx)
  _orizuru_find(ORIZURU_PQ MODULE libpq PACKAGE PostgreSQL TARGETS PostgreSQL::PostgreSQL)
  if(ORIZURU_PQXX AND ORIZURU_PQ)
    add_library(orizuru::postgres INTERFACE IMPORTED ${scope})
    set_target_properties(orizuru::postgres PROPERTIES
      INTERFACE_LINK_LIBRARIES "orizuru::orizuru;${ORIZURU_PQXX};${ORIZURU_PQ}")
  endif()

  _orizuru_find(ORIZURU_JSON MODULE nlohmann_json>=3.9 PACKAGE nlohmann_json
                TARGETS nlohmann_json::nlohmann_json)
  _orizuru_find(ORIZURU_CLI11 MODULE CLI11>=2.1 PACKAGE CLI11 TARGETS CLI11::CLI11)
  if(ORIZURU_JSON AND ORIZURU_CLI11)
    add_library(orizuru::cli INTERFACE IMPORTED ${scope})
    set_target_properties(orizuru::cli PROPERTIES
      INTERFACE_LINK_LIBRARIES "orizuru::orizuru;${ORIZURU_JSON};${ORIZURU_CLI11}")
  endif()

  # Of Boost headers only.
  _orizuru_find(ORIZURU_BOOST PACKAGE Boost TARGETS Boost::headers)
  if(ORIZURU_JSON AND ORIZURU_BOOST)
    add_library(orizuru::web INTERFACE IMPORTED ${scope})
    set_target_properties(orizuru::web PROPERTIES
      INTERFACE_LINK_LIBRARIES "orizuru::orizuru;${ORIZURU_JSON};${ORIZURU_BOOST}")
  endif()

  # Whose target a project has is known only as it is built: its headers check themselves.
  _orizuru_find(ORIZURU_ASIO MODULE asio>=1.19 TARGETS asio::asio)
  if(NOT ORIZURU_ASIO)
    _orizuru_asio(ORIZURU_HAS_ASIO)
  endif()
  if(ORIZURU_ASIO OR ORIZURU_HAS_ASIO)
    add_library(orizuru::asio INTERFACE IMPORTED ${scope})
    set_target_properties(orizuru::asio PROPERTIES
      INTERFACE_LINK_LIBRARIES "orizuru::orizuru;${ORIZURU_ASIO}")
    if(NOT ORIZURU_ASIO)
      _orizuru_header(orizuru::asio asio.hpp)
    endif()
  endif()
endfunction()

cmake_policy(POP)
