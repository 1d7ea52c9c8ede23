# Writes a source that holds files' texts:  cmake -DINPUTS=<file|file…> -DGLOSSARY=<file> -DTEMPLATE=<file> -DOUTPUT=<file.cpp> -P embed_texts.cmake
# Bytes, not string literals: those may not be as long as a lesson everywhere.
string(REPLACE "|" ";" INPUTS "${INPUTS}")
set(arrays "")
set(table "")
set(index 0)
foreach(input IN LISTS INPUTS GLOSSARY TEMPLATE)
    file(READ ${input} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    get_filename_component(name ${input} NAME)
    string(APPEND arrays "const unsigned char text${index}[] = {${bytes}};\n")
    set(text "reinterpret_cast<const char*>(text${index}), sizeof text${index}")
    if(input STREQUAL GLOSSARY)
        set(glossary "${text}")
    elseif(input STREQUAL TEMPLATE)
        set(template "${text}")
    else()
        string(APPEND table "        {\"${name}\", {${text}}},\n")
    endif()
    math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"traces/lessons/lesson_library.h\"\n\nnamespace {\n${arrays}}\n
const std::vector<stagewright::lessons::BuiltInText>& stagewright::lessons::builtInLessons()\n{
    static const std::vector<BuiltInText> all = {\n${table}    };\n    return all;\n}\n
std::string_view stagewright::lessons::builtInGlossary()\n{\n    return {${glossary}};\n}\n
std::string_view stagewright::lessons::builtInTemplate()\n{\n    return {${template}};\n}\n")
