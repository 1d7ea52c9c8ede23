# Writes a source that holds a file's bytes:  cmake -DINPUT=<file> -DOUTPUT=<file.cpp> -DFUNCTION=<name> -P embed_text.cmake
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "#include \"engine/built_in_text.h\"\n\nnamespace {\nconst std::uint8_t text[] = {\n${bytes}\n};\n}\n
std::span<const std::uint8_t> stagewright::${FUNCTION}()\n{\n    return text;\n}\n")
