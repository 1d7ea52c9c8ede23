// A file manager for tests: a small window at the right edge of the screen from which the files given as arguments are
// dragged with the mouse. Prints "ready" once it is shown, and "moved", "copied" or "refused" after a drag.
#include <cstdio>

#include <QApplication>
#include <QDrag>
#include <QMimeData>
#include <QMouseEvent>
#include <QUrl>
#include <QWidget>

namespace {

class Source : public QWidget {
public:
    explicit Source(QList<QUrl> files) : m_files(std::move(files))
    {
        setWindowFlag(Qt::X11BypassWindowManagerHint);
        setGeometry(1440, 60, 140, 80);
    }

protected:
    void mousePressEvent(QMouseEvent* event) override { m_pressed = event->pos(); }
    void mouseMoveEvent(QMouseEvent* event) override
    {
        if ((event->pos() - m_pressed).manhattanLength() < QApplication::startDragDistance()) return;
        auto* carried = new QMimeData;
        carried->setUrls(m_files);
        auto* drag = new QDrag(this);
        drag->setMimeData(carried);
        const Qt::DropAction action = drag->exec(Qt::CopyAction | Qt::MoveAction, Qt::CopyAction);
        std::puts(action == Qt::CopyAction ? "copied" : action == Qt::MoveAction ? "moved" : "refused");
        std::fflush(stdout);
    }
    void paintEvent(QPaintEvent*) override
    {
        if (m_told) return;
        m_told = true;
        std::puts("ready");
        std::fflush(stdout);
    }

private:
    QList<QUrl> m_files;
    QPoint m_pressed;
    bool m_told = false;
};

} // namespace

int main(int argc, char** argv)
{
    QApplication application(argc, argv);
    QList<QUrl> files;
    for (const QString& path : application.arguments().mid(1)) files << QUrl::fromLocalFile(path);
    Source source(files);
    source.show();
    return application.exec();
}
