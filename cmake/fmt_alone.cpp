// SPDX-License-Identifier: BSD-3-Clause
// The functions behind fmt's headers, of which Debian has no static library
// (ImbrexStaticDependencies.cmake). Used headers only would give every file its own copy, for which
// GCC takes many minutes when it optimises libimbrex.so as a whole. The libraries of imbrex hide
// these names.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float value) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double value) noexcept;
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref place);
template char decimal_point_impl<char>(locale_ref place);
template std::locale locale_ref::get<std::locale>() const;

}  // namespace detail
FMT_END_NAMESPACE
