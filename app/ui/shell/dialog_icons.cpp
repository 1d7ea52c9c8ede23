#include "app/ui/shell/dialog_icons.h"

#include <QApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPainterPath>

namespace stagewright {
namespace {

// In a square of 16.
QPainterPath linesOf(QStyle::StandardPixmap what)
{
    QPainterPath path;
    const auto line = [&path](std::initializer_list<QPointF> points) {
        path.addPolygon(QPolygonF(QList<QPointF>(points)));
    };
    const auto folder = [&] { line({{2, 12.5}, {2, 3.5}, {6, 3.5}, {7.5, 5.5}, {14, 5.5}, {14, 12.5}, {2, 12.5}}); };
    const auto sheet = [&] { line({{9.5, 2}, {4, 2}, {4, 14}, {12, 14}, {12, 4.5}, {9.5, 2}, {9.5, 4.5}, {12, 4.5}}); };
    const auto ring = [&] { path.addEllipse(QPointF(8, 8), 6, 6); };
    switch (what) {
    case QStyle::SP_ArrowBack:
    case QStyle::SP_FileDialogBack:
    case QStyle::SP_ArrowLeft:
        line({{13, 8}, {3, 8}});
        line({{7, 4}, {3, 8}, {7, 12}});
        break;
    case QStyle::SP_ArrowForward:
    case QStyle::SP_ArrowRight:
        line({{3, 8}, {13, 8}});
        line({{9, 4}, {13, 8}, {9, 12}});
        break;
    case QStyle::SP_FileDialogToParent:
    case QStyle::SP_ArrowUp:
        line({{8, 13}, {8, 3}});
        line({{4, 7}, {8, 3}, {12, 7}});
        break;
    case QStyle::SP_FileDialogNewFolder:
        folder();
        line({{8, 7}, {8, 11}});
        line({{6, 9}, {10, 9}});
        break;
    case QStyle::SP_DirIcon:
    case QStyle::SP_DirOpenIcon:
    case QStyle::SP_DirClosedIcon:
    case QStyle::SP_DirLinkIcon:
    case QStyle::SP_DirLinkOpenIcon: folder(); break;
    case QStyle::SP_DirHomeIcon:
        line({{2.5, 8}, {8, 3}, {13.5, 8}});
        line({{4, 7}, {4, 13}, {12, 13}, {12, 7}});
        break;
    case QStyle::SP_FileIcon:
    case QStyle::SP_FileLinkIcon: sheet(); break;
    case QStyle::SP_FileDialogListView:
        for (const double y : {4.0, 8.0, 12.0}) line({{3, y}, {13, y}});
        break;
    case QStyle::SP_FileDialogDetailedView:
        for (const double y : {4.0, 8.0, 12.0}) {
            line({{3, y}, {7, y}});
            line({{9, y}, {10, y}});
            line({{12, y}, {13, y}});
        }
        break;
    case QStyle::SP_ComputerIcon:
    case QStyle::SP_DesktopIcon:
        path.addRect(QRectF(2, 3, 12, 8));
        line({{8, 11}, {8, 13.5}});
        line({{5, 13.5}, {11, 13.5}});
        break;
    case QStyle::SP_DriveHDIcon:
    case QStyle::SP_DriveNetIcon:
    case QStyle::SP_DriveCDIcon:
    case QStyle::SP_DriveDVDIcon:
    case QStyle::SP_DriveFDIcon:
        path.addRect(QRectF(2, 5, 12, 6));
        line({{11, 8}, {12, 8}});
        break;
    case QStyle::SP_TrashIcon:
        line({{3, 4.5}, {13, 4.5}});
        line({{6, 4.5}, {6, 2.5}, {10, 2.5}, {10, 4.5}});
        line({{4.5, 4.5}, {5, 14}, {11, 14}, {11.5, 4.5}});
        break;
    case QStyle::SP_MessageBoxInformation:
        ring();
        line({{8, 7.5}, {8, 11}});
        line({{8, 5}, {8, 5.2}});
        break;
    case QStyle::SP_MessageBoxWarning:
        line({{8, 2.5}, {14, 13.5}, {2, 13.5}, {8, 2.5}});
        line({{8, 6.5}, {8, 9.8}});
        line({{8, 11.6}, {8, 11.8}});
        break;
    case QStyle::SP_MessageBoxCritical:
        ring();
        line({{5.7, 5.7}, {10.3, 10.3}});
        line({{10.3, 5.7}, {5.7, 10.3}});
        break;
    case QStyle::SP_MessageBoxQuestion:
        ring();
        path.moveTo(6, 6.4);
        path.cubicTo(6.2, 3.9, 10, 4.2, 9.8, 6.6);
        path.cubicTo(9.6, 8, 8, 7.8, 8, 9.4);
        line({{8, 11.2}, {8, 11.4}});
        break;
    default: break;
    }
    return path;
}

// Painted when it is shown, in the colour that text has then.
class LineIcon : public QIconEngine {
public:
    explicit LineIcon(const QPainterPath& lines) : m_lines(lines) {}
    void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override
    {
        const auto group = mode == QIcon::Disabled ? QPalette::Disabled : QPalette::Active;
        const double side = std::min(rect.width(), rect.height());
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->translate(rect.x() + (rect.width() - side) / 2, rect.y() + (rect.height() - side) / 2);
        painter->scale(side / 16, side / 16);
        painter->setPen(QPen(QApplication::palette().color(group, mode == QIcon::Selected ? QPalette::HighlightedText
                                                                                          : QPalette::WindowText),
                             1.3, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        painter->drawPath(m_lines);
        painter->restore();
    }
    QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override
    {
        QPixmap out(size);
        out.fill(Qt::transparent);
        QPainter painter(&out);
        paint(&painter, QRect(QPoint(), size), mode, state);
        return out;
    }
    QIconEngine* clone() const override { return new LineIcon(m_lines); }

private:
    QPainterPath m_lines;
};

} // namespace

QIcon dialogIcon(QStyle::StandardPixmap what)
{
    const QPainterPath lines = linesOf(what);
    return lines.isEmpty() ? QIcon() : QIcon(new LineIcon(lines));
}

} // namespace stagewright
