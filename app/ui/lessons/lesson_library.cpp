// The shelf: the library's lessons and one's own, with marks of the learner's progress.
#include <algorithm>

#include <QFileInfo>
#include <QSettings>

#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/settings_change.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/base/small_file.h"
#include "traces/lessons/lesson_file.h"
#include "widgets/background.h"
#include "widgets/lessons/lesson_shelf.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

constexpr auto ownKey = "lessons/files";

} // namespace

QStringList LessonController::ownFiles() const { return QSettings().value(QLatin1String(ownKey)).toStringList(); }

void LessonController::openShelf()
{
    m_workspace.room().showPage(m_shelf, u"Lessons"_s);
    hideGap();
    if (!m_library)
        loadLessons();
    else
        fillShelf();
}

void LessonController::loadLessons()
{
    if (m_loading.running()) return;
    struct Loaded {
        std::shared_ptr<const lessons::Library> library;
        std::vector<std::shared_ptr<const lessons::Lesson>> own;
        std::map<std::string, LessonPicture> pictures;
        QStringList faults;
    };
    m_loading.start(
        [files = ownFiles()] {
            Loaded loaded;
            auto library = std::make_shared<lessons::Library>(lessons::loadLibrary());
            for (const Error& fault : library->faults) loaded.faults << qs(fault.message);
            for (const lessons::Lesson& lesson : library->lessons) loaded.pictures[lesson.id] = lessonPictureOf(lesson);
            for (const QString& file : files) {
                auto lesson = lessons::findLesson(file.toStdString());
                if (!lesson) {
                    loaded.faults << qs(lesson.error().message);
                    continue;
                }
                loaded.pictures[lesson->id] = lessonPictureOf(*lesson);
                loaded.own.push_back(std::make_shared<const lessons::Lesson>(std::move(*lesson)));
            }
            loaded.library = std::move(library);
            return loaded;
        },
        [this](Loaded loaded) {
            m_library = std::move(loaded.library);
            m_own = std::move(loaded.own);
            m_pictures = std::move(loaded.pictures);
            m_faults = std::move(loaded.faults);
            fillShelf();
            if (const auto request = std::exchange(m_request, std::nullopt))
                start(request->name, request->over, request->page);
        });
}

void LessonController::fillShelf()
{
    if (!m_library) return;
    auto progress = lessons::LearnerProgress::read(lessons::LearnerProgress::defaultPath());
    QStringList faults = m_faults;
    if (!progress) faults << qs(progress.error().message) + u"; "_s + qs(progress.error().remedy);
    std::vector<ShelfEntry> entries;
    auto add = [&](std::shared_ptr<const lessons::Lesson> lesson, const QString& row, const QString& place) {
        ShelfEntry entry;
        if (progress) {
            entry.mark = progress->markOf(*lesson);
            for (const lessons::KeptAnswer& answer : progress->answers())
                if (answer.lesson == lesson->id && !answer.figure.empty()) entry.figure = qs(answer.figure);
        }
        entry.picture = m_pictures[lesson->id];
        entry.row = row;
        entry.place = place;
        QStringList after;
        for (const std::string& id : lesson->after)
            if (const lessons::Lesson* before = m_library->find(id))
                after << (before->number > 0 ? u"lesson %1, %2"_s.arg(before->number).arg(qs(before->title))
                                             : qs(before->title));
        entry.after = after.join(u"; "_s);
        entry.lesson = std::move(lesson);
        entries.push_back(std::move(entry));
    };
    const std::string folder = lessons::learnerFolder();
    std::vector<const lessons::Lesson*> mine;
    // keys as in files, titles as on the shelf
    const std::pair<const char*, QString> rows[] = {{"basics", u"Basics"_s},
                                                    {"schedules", u"Schedules"_s},
                                                    {"real world", u"Real world"_s},
                                                    {"mastery", u"Mastery"_s},
                                                    {"shared state", u"Shared state"_s}};
    const auto shelfOf = [](const lessons::Lesson& lesson) {
        return lesson.course.empty() ? qs(lesson.shelf).toLower() : QString();
    };
    for (const auto& [name, title] : rows)
        for (const lessons::Lesson& lesson : m_library->lessons)
            if (shelfOf(lesson) == QLatin1String(name))
                add(std::shared_ptr<const lessons::Lesson>(m_library, &lesson), title, {});
    for (const lessons::Lesson& lesson : m_library->lessons)
        if (std::none_of(std::begin(rows), std::end(rows),
                         [&](const auto& row) { return shelfOf(lesson) == QLatin1String(row.first); }))
            mine.push_back(&lesson);
    for (const lessons::Lesson* lesson : mine)
        add(std::shared_ptr<const lessons::Lesson>(m_library, lesson),
            lesson->course.empty() ? u"Your lessons"_s : qs(lesson->course), qs(lesson->file));
    for (const auto& lesson : m_own) add(lesson, u"Your lessons"_s, qs(lesson->file));
    m_shelf->setEntries(std::move(entries));
    m_shelf->setFaults(faults);
    m_workspace.room().setPageStatus(m_shelf->statusText());
}

void LessonController::openFile(const QString& path)
{
    if (!QFileInfo::exists(path)) {
        m_workspace.banner()->showError(u"file %1 is not there"_s.arg(path), u"choose a readable lesson"_s);
        return;
    }
    const auto text = readSmallFile(path.toStdString());
    if (!text) {
        m_workspace.banner()->showError(QString(), text.error());
        return;
    }
    auto lesson = lessons::readLesson(*text, path.toStdString());
    if (!lesson) {
        m_workspace.banner()->showError(QString(), lesson.error());
        return;
    }
    changeSettings([absolute = QFileInfo(path).absoluteFilePath()](QSettings& settings) {
        QStringList files = settings.value(QLatin1String(ownKey)).toStringList();
        files.removeAll(absolute);
        files << absolute;
        settings.setValue(QLatin1String(ownKey), files);
    });
    auto shared = std::make_shared<const lessons::Lesson>(std::move(*lesson));
    m_own.erase(std::remove_if(m_own.begin(), m_own.end(), [&](const auto& one) { return one->id == shared->id; }),
                m_own.end());
    m_own.push_back(shared);
    m_pictures[shared->id] = lessonPictureOf(*shared);
    begin(shared, false, -1);
}

} // namespace stagewright
