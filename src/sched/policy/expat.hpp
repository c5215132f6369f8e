// SPDX-License-Identifier: BSD-3-Clause
// The functions of libexpat that place_file.cpp uses. The library is loaded when it is needed, and
// for us alone: few programs need it, and one that has another copy of it (in an interpreter, or
// linked statically) shall go on to call that. Knows nothing of places.
#pragma once

#include <expat.h>

#include <string>

namespace imbrex::sched {

// Thread safety: any thread may call any function.
class Expat {
 public:
  // Throws Error if the library cannot be loaded; the text says for which `file`.
  explicit Expat(const std::string& file);

#define IMBREX_EXPAT(name) decltype(&XML_##name) name = load<decltype(&XML_##name)>("XML_" #name);
 private:
  template <class Function>
  [[nodiscard]] Function load(const char* const name) const {
    return reinterpret_cast<Function>(find(name));
  }
  [[nodiscard]] void* find(const char* name) const;

  const std::string file_;
  void* const library_;  // never unloaded

 public:
  IMBREX_EXPAT(ParserCreate)
  IMBREX_EXPAT(ParserFree)
  IMBREX_EXPAT(SetUserData)
  IMBREX_EXPAT(SetElementHandler)
  IMBREX_EXPAT(SetCharacterDataHandler)
  IMBREX_EXPAT(SetEntityDeclHandler)
  IMBREX_EXPAT(Parse)
  IMBREX_EXPAT(StopParser)
  IMBREX_EXPAT(GetErrorCode)
  IMBREX_EXPAT(ErrorString)
  IMBREX_EXPAT(GetCurrentLineNumber)
#undef IMBREX_EXPAT
};

}  // namespace imbrex::sched
