# SPDX-License-Identifier: BSD-3-Clause
# An install after a build of some targets only, such as the one of ./demo.

# imbrex_build_before_install(<component> <target>...): `cmake --install` builds the targets, which
# belong to the component, first, where one of their files is missing. A build that fails leaves
# the prefix as it was.
# REQUIRES: it stands before all other install().
function(imbrex_build_before_install component)
  list(TRANSFORM ARGN REPLACE "(.+)" "\"$<TARGET_FILE:\\1>\"" OUTPUT_VARIABLE files)
  list(JOIN files " " files)
  list(JOIN ARGN " " targets)
  install(CODE "
    set(imbrex_missing \"\")
    foreach(file ${files})
      if(NOT EXISTS \"\${file}\")
        cmake_path(GET file FILENAME name)
        string(APPEND imbrex_missing \" \${name}\")
      endif()
    endforeach()
    if(imbrex_missing)
      message(STATUS \"Building what is not there yet:\${imbrex_missing}\")
      execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${CMAKE_BINARY_DIR}\"
        --config \"\${CMAKE_INSTALL_CONFIG_NAME}\" --target ${targets}
        RESULT_VARIABLE imbrex_status)
      if(NOT imbrex_status EQUAL 0)
        message(FATAL_ERROR \"imbrex: nothing was installed, since this could not be built:\"
          \"\${imbrex_missing}\")
      endif()
    endif()" COMPONENT ${component})
endfunction()
