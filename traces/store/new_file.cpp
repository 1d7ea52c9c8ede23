#include "traces/store/new_file.h"

#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stagewright {

NewFile::NewFile(std::string path) : m_path(std::move(path))
{
    const int file = ::open(m_path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return;
    m_made = true;
    ::close(file);
}

NewFile::~NewFile()
{
    struct stat there {};
    if (m_made && ::stat(m_path.c_str(), &there) == 0 && there.st_size == 0) ::unlink(m_path.c_str());
}

} // namespace stagewright
