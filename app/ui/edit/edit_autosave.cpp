#include "app/ui/edit/edit_autosave.h"

#include <algorithm>
#include <mutex>

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QSaveFile>
#include <QSettings>

#include "widgets/literals.h"
#include "widgets/preferences/preferences.h"

namespace stagewright {
namespace {

QString lockOf(const QString& file) { return file + u".lock"_s; }

Result<void> writeRecord(const EditRecord& record, const QString& path)
{
    STAGEWRIGHT_TRY(auto text, writeEditRecord(record));
    QSaveFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(text.data(), static_cast<qint64>(text.size())) < 0 ||
        !file.commit())
        return fail(ErrorCode::Failed, "file " + path.toStdString() + ": " + file.errorString().toStdString(),
                    "the edit is not autosaved; save it");
    return {};
}

} // namespace

EditAutosave::EditAutosave(Jobs& jobs, QObject* parent)
    : QObject(parent), m_disk(std::make_shared<std::mutex>()), m_writing(jobs)
{
    m_due.setSingleShot(true);
    connect(&m_due, &QTimer::timeout, this, &EditAutosave::write);
}

EditAutosave::~EditAutosave()
{
    m_writing.drop();
    const std::lock_guard hold(*m_disk);
    if (m_cleared) QFile::remove(m_file);
}

void EditAutosave::flush()
{
    const bool due = m_due.isActive();
    m_due.stop();
    if (due && m_take && prepare()) {
        const EditRecord record = m_take();
        const std::lock_guard hold(*m_disk);
        (void)writeRecord(record, m_file);
    }
    m_take = nullptr;
}

QString EditAutosave::folder() { return QFileInfo(QSettings().fileName()).absolutePath() + u"/autosave"_s; }

bool EditAutosave::prepare()
{
    if (m_lock) return true;
    if (!QDir().mkpath(folder())) return false;
    static int number = 0;
    m_file = u"%1/edit-%2-%3.edit"_s.arg(folder()).arg(QCoreApplication::applicationPid()).arg(++number);
    auto lock = std::make_unique<QLockFile>(lockOf(m_file));
    lock->setStaleLockTime(0); // stale once its process is gone, regardless of age
    if (!lock->tryLock()) return false;
    m_lock = std::move(lock);
    return true;
}

void EditAutosave::changed(Take take)
{
    const Preferences& preferences = PreferenceStore::instance().value();
    if (!preferences.autosave) return;
    m_take = std::move(take);
    if (!m_due.isActive()) m_due.start(1000 * preferences.autosaveSeconds); // further changes don't delay it
}

void EditAutosave::preferencesChanged()
{
    const Preferences& preferences = PreferenceStore::instance().value();
    if (!preferences.autosave)
        m_due.stop();
    else if (m_due.isActive())
        m_due.start(std::min(m_due.remainingTime(), 1000 * preferences.autosaveSeconds));
}

void EditAutosave::write()
{
    if (!m_take) return;
    if (m_writing.running()) return m_due.start(); // once more
    if (!prepare()) {
        emit failed({ErrorCode::Failed, "folder " + folder().toStdString() + " can't be written to",
                     "the edit is not autosaved; save it"});
        return;
    }
    m_cleared = false;
    m_writing.start(
        [record = std::make_shared<const EditRecord>(m_take()), path = m_file,
         disk = m_disk](const std::stop_token& stop) -> Result<void> {
            const std::lock_guard hold(*disk);
            if (stop.stop_requested()) return {};
            return writeRecord(*record, path);
        },
        [this](const Result<void>& done) {
            m_written = done.has_value();
            if (!done) emit failed(done.error());
        });
}

void EditAutosave::clear()
{
    m_due.stop();
    m_take = nullptr;
    m_written = false;
    if (!m_lock) return;
    const auto remove = [this] {
        QFile::remove(m_file);
        m_cleared = false;
    };
    m_writing.drop();
    m_cleared = true;
    if (!m_writing.waits(remove)) remove();
}

std::optional<EditAutosave::Orphan> EditAutosave::takeOrphan()
{
    const QDir dir(folder());
    for (const QFileInfo& info : dir.entryInfoList({u"*.edit"_s}, QDir::Files, QDir::Time)) {
        const QString path = info.absoluteFilePath();
        if (path == m_file) continue;
        auto lock = std::make_unique<QLockFile>(lockOf(path));
        lock->setStaleLockTime(0);
        if (!lock->tryLock()) continue; // belongs to an open window
        QFile file(path);
        if (!file.open(QIODevice::ReadOnly)) continue;
        const QByteArray bytes = file.readAll();
        file.close();
        auto record = readEditRecord(std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size())));
        if (!record) {
            QString aside = path + u".damaged"_s;
            for (int i = 2; QFile::exists(aside); ++i) aside = path + u".damaged%1"_s.arg(i);
            QFile::rename(path, aside);
            emit failed(record.error());
            continue;
        }
        m_orphanLock = std::move(lock);
        return Orphan{std::move(*record), path};
    }
    return std::nullopt;
}

void EditAutosave::drop(const Orphan& orphan)
{
    QFile::remove(orphan.file);
    m_orphanLock.reset();
}

void EditAutosave::release(const Orphan&) { m_orphanLock.reset(); }

} // namespace stagewright
