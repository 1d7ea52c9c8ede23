#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace stagewright {

// A tar file of regular files, as POSIX writes them.
inline std::string tarOf(const std::vector<std::pair<std::string, std::string>>& members)
{
    std::string tar;
    for (const auto& [name, text] : members) {
        char head[512] = {};
        std::snprintf(head, 100, "%s", name.c_str());
        std::snprintf(head + 100, 8, "0000644");
        std::snprintf(head + 108, 8, "0000000");
        std::snprintf(head + 116, 8, "0000000");
        std::snprintf(head + 124, 12, "%011o", static_cast<unsigned>(text.size()));
        std::snprintf(head + 136, 12, "00000000000");
        head[156] = '0';
        std::copy_n("ustar\00000", 8, head + 257);
        std::memset(head + 148, ' ', 8);
        unsigned sum = 0;
        for (const char c : head) sum += static_cast<unsigned char>(c);
        std::snprintf(head + 148, 8, "%06o", sum);
        tar.append(head, sizeof head);
        tar += text;
        tar.append((512 - text.size() % 512) % 512, '\0');
    }
    tar.append(1024, '\0');
    return tar;
}

} // namespace stagewright
